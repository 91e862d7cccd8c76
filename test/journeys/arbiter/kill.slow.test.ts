import { setTimeout as sleep } from "node:timers/promises";
import canonicalize from "canonicalize";
import type { Address } from "viem";
import { describe, expect, test } from "vitest";
import { verdictId } from "../../../api/arbiter/request.ts";
import { NETWORKS } from "../../../api/platform/networks.ts";
import { withClient } from "../../../scripts/embedded/postgres.ts";
import { sha256 } from "../../support/arbiter/rows.ts";
import { type Hold, startHoldingNode } from "../../support/chain/nodes.ts";
import { forFile } from "../../support/for-file.ts";
import { type LocalServer, serveHttp } from "../../support/http-server.ts";
import { chargedOnce, settlements } from "../../support/payments/on-chain.ts";
import { type Answer, post, v2 } from "../../support/payments/requests.ts";
import { newPayer, type Signed, signPayment } from "../../support/payments/signing.ts";
import { type ApiProcess, startApiStage } from "../../support/service/api-process.ts";
import { binary } from "../../support/service/database.ts";

const PATIENT = { timeout: 30_000, interval: 10 };

/** A server of deliverables that can hold a response back, so that a test knows what the arbiter is doing. */
interface Shop extends LocalServer {
  /** The number of requests for a path. */
  readonly asked: (path: string) => number;
  /** Holds the next response. Later ones are sent immediately. */
  readonly hold: () => Hold;
}

async function startShop(): Promise<Shop> {
  const paths: (string | undefined)[] = [];
  const holds: { readonly reach: () => void; readonly released: Promise<void> }[] = [];
  const server = await serveHttp(async ({ url }, response) => {
    paths.push(url);
    const held = holds.shift();
    held?.reach();
    await held?.released;
    response.end("delivered");
  });
  return {
    ...server,
    asked: (path) => paths.filter((one) => one === path).length,
    hold() {
      const reached = Promise.withResolvers<void>();
      const released = Promise.withResolvers<void>();
      holds.push({ reach: reached.resolve, released: released.promise });
      return { reached: reached.promise, release: released.resolve };
    },
  };
}

const [stage, shop] = await Promise.all([forFile(startApiStage()), forFile(startShop())]);
const node = await forFile(startHoldingNode(stage.chain));
await stage.lockCommitsOf("verdict");
let api = await start();

function start(): Promise<ApiProcess> {
  return stage.start(node, { ARBITER_ALLOWED_ORIGINS: shop.url });
}
/** Signs an authorization for a claim that is not paid yet. */
const newClaim = async (): Promise<Signed> => signPayment(await newPayer(stage.chain));
/** Sequential, because the chain's faucet is a single account. */
async function newClaims(count: number): Promise<Signed[]> {
  const claims: Signed[] = [];
  while (claims.length < count) claims.push(await newClaim());
  return claims;
}

const pathOf = ({ authorization }: Signed): string => `/${authorization.nonce}`;
function idOf({ authorization: { from, nonce } }: Signed): string {
  const { id: network, usdc } = NETWORKS["eip155:8453"];
  return verdictId({ network, asset: usdc.address, payer: from.toLowerCase() as Address, nonce });
}
function pay(claim: Signed): Promise<Answer> {
  const conditions = { url: `${shop.url}${pathOf(claim)}`, expect_contains: "delivered" };
  const body = JSON.stringify({ category: "http-delivery", conditions, deal_ref: claim.authorization.nonce });
  return post(`${api.url}/arbiter/verify`, v2(claim), body);
}
const isReplay = (answer: Answer) => answer.headers.get("x-idempotent-replay") === "true";
const nonceOf = ({ authorization }: Signed) => binary(authorization.nonce);
const state = async (claim: Signed) =>
  (await stage.owner.query("SELECT state FROM payment WHERE nonce = $1", [nonceOf(claim)])).rows[0]?.state;
const verdicts = async (claim: Signed) =>
  (await stage.owner.query("SELECT document FROM verdict WHERE id = $1", [idOf(claim)])).rows as { document: string }[];
const charges = async ({ authorization }: Signed) => (await settlements(stage.chain, authorization.from)).length;
/** The payment state, charges, and verdicts of each claim. */
async function outcomesOf(claims: readonly Signed[]): Promise<unknown[]> {
  const found: unknown[] = [];
  for (const claim of claims) found.push([await state(claim), await charges(claim), (await verdicts(claim)).length]);
  return found;
}

/** Pays the claim and waits until the process reaches the given point, still without a response. */
async function reaches(claim: Signed, at: Promise<unknown>): Promise<void> {
  const early = pay(claim).then((answer) =>
    Promise.reject(new Error(`answered too early: ${answer.status} ${answer.text}`)),
  );
  // The kill closes this connection.
  early.catch(() => undefined);
  await Promise.race([at, early]);
}

async function restart(): Promise<void> {
  await stage.endLeases();
  api = await start();
}

/** Sends the same header until the response is not a 503. */
async function sentAgain(claim: Signed): Promise<Answer> {
  for (const deadline = Date.now() + 30_000; ; await sleep(100)) {
    const answer = await pay(claim);
    if (answer.status !== 503 || Date.now() > deadline) return answer;
  }
}

/** Expects one charge and one verdict, returned by this response and every later one. */
async function expectDecidedOnce(claim: Signed, answer: Answer): Promise<void> {
  expect({ status: answer.status, text: answer.text, log: api.output() }).toMatchObject({ status: 200 });
  expect(answer.body).toMatchObject({ id: idOf(claim), verdict: "release", deal_ref: claim.authorization.nonce });
  const again = await pay(claim);
  expect([again.status, again.text, isReplay(again)]).toEqual([200, answer.text, true]);
  await chargedOnce(stage.chain, claim);
  expect((await verdicts(claim)).map(({ document }) => JSON.parse(document))).toEqual([answer.body]);
}

describe("process killed with SIGKILL", () => {
  test("A process killed before settling, before looking, while fetching, or while storing loses no fee and no verdict", async () => {
    const [unsent, unseen, fetched, decided] = (await newClaims(4)) as [Signed, Signed, Signed, Signed];
    await withClient(stage.database.ownerUrl, async (client) => {
      const fetching = shop.hold();
      await reaches(decided, fetching.reached);
      await client.query("BEGIN");
      await client.query("SELECT 1 FROM payment WHERE nonce = $1 FOR UPDATE", [nonceOf(decided)]);
      fetching.release();
      await stage.untilBlocked("WITH fulfilled");
      await reaches(fetched, shop.hold().reached);
      await reaches(unseen, node.hold("eth_getLogs", unseen.authorization.from).reached);
      await expect.poll(() => charges(unseen), PATIENT).toBe(1);
      await reaches(unsent, node.hold("eth_sendRawTransaction", unsent.authorization.from).reached);
      expect(await outcomesOf([unsent, unseen, fetched, decided])).toEqual([
        ["settling", 0, 0],
        ["settling", 1, 0],
        ["settled", 1, 0],
        ["settled", 1, 0],
      ]);
      await api.kill();
      await client.query("ROLLBACK");
    });
    await restart();
    for (const claim of [unsent, unseen, fetched, decided]) await expectDecidedOnce(claim, await sentAgain(claim));
    // A fetch interrupted by the kill is repeated, and so may be one whose verdict was not committed.
    expect(shop.asked(pathOf(fetched))).toBe(2);
    expect(shop.asked(pathOf(decided))).toBeLessThanOrEqual(2);
  });

  test("A verdict being committed and one being fetched are both finished without a retry, the first without another fetch", async () => {
    const [committed, fetched] = (await newClaims(2)) as [Signed, Signed];
    await withClient(stage.database.ownerUrl, async (client) => {
      await client.query("SELECT pg_advisory_lock(1)");
      await reaches(committed, stage.untilBlocked("COMMIT"));
      await reaches(fetched, shop.hold().reached);
      expect(await outcomesOf([committed, fetched])).toEqual([
        ["settled", 1, 0],
        ["settled", 1, 0],
      ]);
      await api.kill();
    });
    await expect.poll(() => verdicts(committed), PATIENT).toHaveLength(1);
    await restart();
    for (const claim of [committed, fetched]) {
      await expect.poll(() => state(claim), PATIENT).toBe("fulfilled");
      const answer = await pay(claim);
      expect(isReplay(answer)).toBe(true);
      await expectDecidedOnce(claim, answer);
    }
    expect([shop.asked(pathOf(committed)), shop.asked(pathOf(fetched))]).toEqual([1, 2]);
  });
});

test("Every verdict of this file is stored under its hash and queued or logged", async () => {
  const { rows } = await stage.owner.query<{ id: string; document: string; sha256: string }>(
    "SELECT id, document, sha256 FROM verdict ORDER BY id",
  );
  expect(rows.map(({ sha256: hash }) => hash)).toEqual(
    rows.map(({ document }) => sha256(canonicalize(JSON.parse(document)) ?? "")),
  );
  expect(rows.length).toBeGreaterThan(0);
  const logged = await stage.owner.query<{ ref: string }>(
    "SELECT ref FROM log_pending WHERE type = 'verdict' UNION SELECT ref FROM log_entry WHERE type = 'verdict' ORDER BY ref",
  );
  expect(logged.rows.map(({ ref }) => ref)).toEqual(rows.map(({ id }) => id));
});
