import { setTimeout as sleep } from "node:timers/promises";
import { withClient } from "../../../scripts/embedded/postgres.ts";
import { chargedOnce } from "../payments/on-chain.ts";
import { type Answer, post, v2 } from "../payments/requests.ts";
import { newPayer, type Signed, signPayment } from "../payments/signing.ts";
import { age, binary } from "../service/database.ts";
import { startService, type TestService } from "../service/service.ts";
import { type BaseLike, type BaseLikePlan, startBaseLike } from "./base-like.ts";

/** A service on a chain like Base, both on the test's clock, and payments to it. */
export interface BaseStage {
  readonly base: BaseLike;
  readonly service: TestService;
  /** Signs an authorization by a new payer that is valid for these minutes of the chain's time. */
  readonly sign: (minutes: number) => Promise<Signed>;
  readonly pay: (signed: Signed) => Promise<Answer>;
  /** The state of the payment's row, and whether its settlement is final. */
  readonly rowOf: (signed: Signed) => Promise<{ readonly state: string; readonly final: boolean } | undefined>;
  /** The number of payments that the relayer has sent in all its transactions. */
  readonly members: () => Promise<number>;
  /** Ages rows by these minutes, so that leases end and waiting work is due. */
  readonly age: (minutes: number) => Promise<void>;
  readonly stop: () => Promise<void>;
}

const ROW = "SELECT state, final_at IS NOT NULL AS final FROM payment WHERE nonce = $1";

export async function startBaseStage(plan: BaseLikePlan = {}): Promise<BaseStage> {
  const base = await startBaseLike(plan);
  const { chain, rpcUrls, now } = base;
  const service = await startService({ chain, now, config: { rpcUrls } });
  const query = <T extends object>(text: string, values: readonly unknown[] = []) =>
    withClient(service.database.ownerUrl, async (client) => (await client.query<T>(text, [...values])).rows);
  return {
    base,
    service,
    sign: async (minutes) => {
      const payer = await newPayer(chain);
      await base.caughtUp();
      return signPayment(payer, { validBefore: base.unixNow() + BigInt(minutes * 60) });
    },
    pay: (signed) => post(`${service.url}/test/basic`, v2(signed)),
    rowOf: async ({ authorization }) =>
      (await query<{ state: string; final: boolean }>(ROW, [binary(authorization.nonce)]))[0],
    members: async () => (await query("SELECT purpose FROM relay_member")).length,
    age: (minutes) => age(service.database, minutes * 60),
    stop: async () => {
      await service.stop();
      await base.stop();
    },
  };
}

/** Repeats the payment while the status is 503, as the response advises. Returns the result. */
export async function resultOf({ pay }: BaseStage, signed: Signed): Promise<Answer> {
  let answer = await pay(signed);
  for (const deadline = Date.now() + 30_000; answer.status === 503 && Date.now() < deadline; await sleep(100))
    answer = await pay(signed);
  if (answer.status !== 200) throw new Error(`${answer.status} ${answer.text}`);
  return answer;
}

/** Expects that the payment, its payer's only one, is charged once. Returns the result. */
export async function expectBought(stage: BaseStage, signed: Signed): Promise<Answer> {
  const answer = await resultOf(stage, signed);
  await chargedOnce(stage.base.chain, signed);
  return answer;
}
