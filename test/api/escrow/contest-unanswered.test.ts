import { pino } from "pino";
import { zeroHash } from "viem";
import { expect, test } from "vitest";
import { connect } from "../../../api/platform/db/connection.ts";
import { createService } from "../../../api/service.ts";
import {
  type ContestableHold,
  contest,
  deliverWithWindow,
  holdWithWindow,
  startContestScene,
} from "../../support/escrow/contest.ts";
import { askedOnChain, END_TURNS, newMerchant, statusOf } from "../../support/escrow/contract.ts";
import { forFile } from "../../support/for-file.ts";
import { send } from "../../support/payments/requests.ts";

// Contests that were handed in before their windows closed, at a time when the service is busy with others.

const scene = await forFile(startContestScene());
const { service, at, site, pass, mineAt } = scene;
const owner = await forFile(connect(service.database.ownerUrl, 1));
const pool = await forFile(connect(service.config.databaseUrl));
const log = pino({ level: "silent" });
const { escrow } = await createService(service.config, pool, { log, access: log });
const merchant = newMerchant();

/** What an open contest of another sale does that waits for its turn: the next ones wait with it. */
const BUSY = "UPDATE escrow_contest SET next_attempt_at = '-infinity', owner = NULL WHERE is_open";

async function open(): Promise<ContestableHold & { readonly until: number }> {
  const conditions = { expect: { min_bytes: 1_000 }, "http-delivery": { url: `${site.url}/gone` } };
  const held = await holdWithWindow(at.escrow, merchant, { seconds: 60, conditions });
  const { body } = await deliverWithWindow(service, merchant, { held });
  return { ...held, until: Date.parse((body.contest as { until: string }).until) / 1000 };
}

/** Handed in, and left for later. */
async function handIn(held: ContestableHold): Promise<void> {
  const { body } = await contest(service, held, { category: "http-delivery" });
  expect(body).toMatchObject({ contest: { decision: null }, status: "pending" });
}

/** Everything that is due on the chain, and no contest. */
async function settle(): Promise<void> {
  await owner.query(END_TURNS);
  await escrow.settleDue();
  await escrow.idle();
}

const answerTo = async ({ id }: ContestableHold) => (await send(`${service.url}/escrow/contest/${id}`)).body;

test("an open contest is never a release: it is answered after its window's end, and without an answer the clock refunds it", async () => {
  const first = await open();
  // The service cannot answer the first one: its URL is looked at by nobody in this test until the pass below.
  await owner.query(
    `INSERT INTO escrow_contest (payment, merchant, claim, claim_sha256, signature, made_at, next_attempt_at)
     SELECT payment, merchant, '{"category":"http-delivery"}', payment, '\\x01', 1, '-infinity' FROM escrow_task`,
  );
  const [late, never] = [await open(), await open()];
  await owner.query(BUSY);
  for (const held of [late, never]) await handIn(held);
  await mineAt(never.until + 60);
  await settle();
  const held = [first, late, never];
  expect(await Promise.all(held.map((one) => statusOf(at.escrow, one)))).toEqual(["held", "held", "held"]);

  await owner.query("UPDATE escrow_contest SET next_attempt_at = 'infinity' WHERE payment = decode($1, 'hex')", [
    never.id.slice(2),
  ]);
  await escrow.answerContests();
  await settle();
  expect(await answerTo(late)).toMatchObject({ contest: { rule: "claim_false" }, status: "refunded" });
  expect(await statusOf(at.escrow, never)).toBe("held");

  const { blockNumber } = await scene.chain.client.getTransactionReceipt({ hash: never.transaction });
  await mineAt(Number((await scene.chain.client.getBlock({ blockNumber })).timestamp) + 1_800);
  await settle();
  const refund = { decision: "refund", event: { record: zeroHash } };
  expect(await askedOnChain(at.escrow, never)).toMatchObject([refund]);
  await pass();
  expect(await answerTo(never)).toMatchObject({
    contest: { rule: "window_closed", decision: "refund" },
    status: "refunded",
  });
  expect(await askedOnChain(at.escrow, never)).toMatchObject([refund]);
});
