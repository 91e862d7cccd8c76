import { setTimeout as sleep } from "node:timers/promises";
import type { LocalAccount } from "viem";
import { privateKeyToAddress } from "viem/accounts";
import {
  type ContestableHold,
  contestBody,
  deliverVersion3,
  holdWithWindow,
  postContest,
} from "../../../test/support/escrow/contest.ts";
import { deployEscrow, type EscrowScene, newMerchant, statusOf } from "../../../test/support/escrow/contract.ts";
import { serveHttp } from "../../../test/support/http-server.ts";
import { ARBITER_KEY } from "../../../test/support/service/accounts.ts";
import { type Attack, atMost, type Goal, type Row } from "../row.ts";
import { openService, type Service } from "../service.ts";

/** Sales of a buyer and a merchant who are one and the same: each contest looks at a site that never answers. */
const SALES = 12;
const EACH = 10;
const WINDOW = { seconds: 600 };
const CLAIM = { category: "http-delivery" };
const ANSWERED_WITHIN_MS = 120_000;

const row = (id: string, what: string, by: Pick<Row, "goal" | "unit">): Row => ({
  ...{ id: `contests-${id}`, line: 17, what },
  ...by,
});
const atLeast = (limit: number): Goal => ({
  text: `≥ ${limit}`,
  isReached: (value) => typeof value === "number" && value >= limit,
});

/** A flood of contests: what it asks of others, what it keeps from an honest buyer, and who pays for it. */
export const CONTESTS: Attack = {
  rows: [
    row("unsigned", `calls for ${SALES * EACH} contests of ${SALES} sales that no payer signed`, {
      goal: atMost(2 * SALES),
    }),
    row("fetches", `fetches for a contest that is sent ${EACH} times`, { goal: atMost(2) }),
    row("bytes", "bytes that a contested sale has more than others", { goal: atMost(4_096) }),
    row("honest", "an honest buyer's refund beside them", { goal: atMost(30), unit: "s" }),
    row("gas", "our gas for a contested sale", { goal: atMost(50_000) }),
    row("attacker", "what its hold costs the attacker, by that", { goal: atLeast(2), unit: "times" }),
  ],
  async run(ground) {
    const base = await ground.ownBase();
    const asked = new Map<string, number>();
    const site = await serveHttp(({ url = "" }, response) => {
      asked.set(url, (asked.get(url) ?? 0) + 1);
      if (url === "/honest") response.writeHead(404).end();
    });
    ground.untilEnd(site.stop);
    const scene = { chain: base.chain, escrow: await deployEscrow(base.chain) };
    const env = {
      ESCROW_ADDRESSES: scene.escrow.address,
      ARBITER_PRIVATE_KEY: ARBITER_KEY,
      ARBITER_ALLOWED_ORIGINS: site.url,
    };
    const service = await openService(ground, { base, env, jobs: true });
    try {
      return await flood({ service, scene, site: site.url, asked });
    } finally {
      await service.stop();
    }
  },
};

interface Flood {
  readonly service: Service;
  readonly scene: EscrowScene;
  readonly site: string;
  readonly asked: ReadonlyMap<string, number>;
}

async function flood({ service, scene, site, asked }: Flood): Promise<Readonly<Record<string, number>>> {
  const sell = async (merchant: LocalAccount, path: string): Promise<ContestableHold> => {
    const conditions = { "http-delivery": { url: `${site}/${path}` } };
    const held = await holdWithWindow(scene, merchant, { ...WINDOW, conditions });
    await service.base.caughtUp();
    await expectStatus(deliverVersion3(service, merchant, { held }), 200);
    return held;
  };
  const attacker = newMerchant();
  const held: ContestableHold[] = [];
  while (held.length < SALES) held.push(await sell(attacker, `hangs/${held.length}`));
  const honest = await sell(newMerchant(), "honest");
  const unsigned = await callsForUnsigned(service, held, attacker);

  const signed = await Promise.all(held.map((one) => contestBody(service, { held: one, claim: CLAIM })));
  const said = signed.flatMap((body) => repeated(() => postContest(service, body).catch(() => null)));
  await until(() => asked.size > 0);
  const seconds = await refundSeconds(service, scene, honest);
  await Promise.all(said);
  await until(async () => (await unanswered(service)) === 0);
  for (const one of held) await until(async () => (await statusOf(scene, one)) !== "held");
  const gas = await gasOfOutcomes(service);
  return {
    "contests-unsigned": unsigned,
    "contests-fetches": Math.max(...held.map((_, place) => asked.get(`/hangs/${place}`) ?? 0)),
    "contests-bytes": await bytesOf(service),
    "contests-honest": Math.round(seconds * 10) / 10,
    "contests-gas": Math.round(gas),
    "contests-attacker": Math.round((10 * (await gasOfHolds(scene, held))) / gas) / 10,
  };
}

const repeated = <T>(one: () => T): readonly T[] => Array.from({ length: EACH }, one);

/** What the provider is asked for contests that somebody else signed. */
async function callsForUnsigned(service: Service, held: readonly ContestableHold[], signer: LocalAccount) {
  const forged = await Promise.all(held.map((one) => contestBody(service, { held: one, claim: CLAIM, signer })));
  service.base.calls.reset();
  await Promise.all(forged.flatMap((body) => repeated(() => expectStatus(postContest(service, body), 403))));
  return service.base.calls.total();
}

/** From an honest contest to its refund on the chain. */
async function refundSeconds(service: Service, scene: EscrowScene, held: ContestableHold): Promise<number> {
  const started = performance.now();
  await expectStatus(postContest(service, await contestBody(service, { held, claim: CLAIM })), 200);
  await until(async () => (await statusOf(scene, held)) === "refunded");
  return (performance.now() - started) / 1_000;
}

async function until(isSo: () => Promise<boolean> | boolean): Promise<void> {
  const deadline = performance.now() + ANSWERED_WITHIN_MS;
  while (!(await isSo())) {
    if (performance.now() > deadline) throw new Error("a contest has no end");
    await sleep(100);
  }
}

async function expectStatus(answering: ReturnType<typeof postContest>, wanted: number): Promise<void> {
  const { status, text } = await answering;
  if (status !== wanted) throw new Error(`${status} instead of ${wanted}: ${text.slice(0, 300)}`);
}

const countOf = async ({ owner }: Service, what: string): Promise<number> =>
  Number((await owner.query<{ count: string }>(`SELECT ${what} AS count`)).rows[0]?.count);

const unanswered = (service: Service) => countOf(service, "(SELECT count(*) FROM escrow_contest WHERE is_open)");

const bytesOf = async (service: Service): Promise<number> => {
  const of = (table: string) => `(SELECT avg(pg_column_size(one.*)) FROM ${table} AS one)`;
  const tables = ["escrow_window", "escrow_contest", "escrow_contest_answer"];
  return Math.round(await countOf(service, tables.map(of).join(" + ")));
};

/** Everything that the arbiter sent, by outcome. */
async function gasOfOutcomes({ owner, base }: Service): Promise<number> {
  const { rows } = await owner.query<{ hash: string; outcomes: string }>(
    "SELECT '0x' || encode(tx, 'hex') AS hash, count(*) AS outcomes FROM escrow_task WHERE tx IS NOT NULL GROUP BY tx",
  );
  const receipts = await Promise.all(
    rows.map(({ hash }) => base.chain.client.getTransactionReceipt({ hash: hash as `0x${string}` })),
  );
  const arbiter = privateKeyToAddress(ARBITER_KEY).toLowerCase();
  const gas = receipts.filter(({ from }) => from === arbiter).reduce((sum, { gasUsed }) => sum + Number(gasUsed), 0);
  return gas / rows.reduce((sum, { outcomes }) => sum + Number(outcomes), 0);
}

async function gasOfHolds({ chain }: EscrowScene, held: readonly ContestableHold[]): Promise<number> {
  const receipts = await Promise.all(
    held.map(({ transaction }) => chain.client.getTransactionReceipt({ hash: transaction })),
  );
  return receipts.reduce((sum, { gasUsed }) => sum + Number(gasUsed), 0) / receipts.length;
}
