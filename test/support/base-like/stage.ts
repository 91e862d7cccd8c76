import { setTimeout as sleep } from "node:timers/promises";
import type { LocalAccount } from "viem";
import { expect } from "vitest";
import { withClient } from "../../../scripts/embedded/postgres.ts";
import { type Fault, refuse } from "../chain/rpc.ts";
import { chargedOnce } from "../payments/on-chain.ts";
import { type Answer, post, v2 } from "../payments/requests.ts";
import { newPayer, type Signed, signPayment } from "../payments/signing.ts";
import { age, binary } from "../service/database.ts";
import { startService, type TestService, type TestServicePlan } from "../service/service.ts";
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
  /** The relayer's transactions, newest first, with their nonces and their number of signatures. */
  readonly relayed: () => Promise<
    readonly { readonly nonce: number; readonly signed: number; readonly state: string }[]
  >;
  /** The number of payments that the relayer has sent in all its transactions. */
  readonly members: () => Promise<number>;
  /** Ages rows by these minutes, so that leases end and waiting work is due. */
  readonly age: (minutes: number) => Promise<void>;
  readonly stop: () => Promise<void>;
}

const ROW = "SELECT state, final_at IS NOT NULL AS final FROM payment WHERE nonce = $1";
const RELAYED =
  "SELECT nonce::int, cardinality(hashes) AS signed, state FROM relay WHERE chain = 8453 ORDER BY id DESC";

export async function startBaseStage(plan: BaseLikePlan & Pick<TestServicePlan, "config"> = {}): Promise<BaseStage> {
  const base = await startBaseLike(plan);
  const { chain, rpcUrls, now } = base;
  const service = await startService({ chain, now, config: { ...plan.config, rpcUrls } });
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
    relayed: () => query(RELAYED),
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

const withoutLogs: Fault = async (call, pass) =>
  call.method === "eth_getLogs" ? refuse(call, -32_000, "logs are unavailable") : pass(call);

/** A payment that the chain shows and the service has not seen. Its row is `settling`. */
export interface UnseenPayment {
  readonly payer: LocalAccount;
  readonly signed: Signed;
  /** Sends the same header again. */
  readonly again: () => Promise<Answer>;
}

export async function payUnseen(base: BaseLike, service: Pick<TestService, "url">): Promise<UnseenPayment> {
  const payer = await newPayer(base.chain);
  const signed = await signPayment(payer, { validBefore: base.unixNow() + 120n });
  const again = () => post(`${service.url}/test/basic`, v2(signed));
  base.become(withoutLogs);
  expect((await again()).status).toBe(503);
  base.become(null);
  await chargedOnce(base.chain, signed);
  return { payer, signed, again };
}
