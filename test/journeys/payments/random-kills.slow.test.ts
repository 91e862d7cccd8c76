import { setTimeout as sleep } from "node:timers/promises";
import type { LocalAccount } from "viem";
import { expect, onTestFailed, test, vi } from "vitest";
import { type HoldingNode, startHoldingNode } from "../../support/chain/nodes.ts";
import { chance } from "../../support/chance.ts";
import { forFile } from "../../support/for-file.ts";
import { paymentsOnChain } from "../../support/payments/on-chain.ts";
import { post, v2 } from "../../support/payments/requests.ts";
import { newPayer, type Signed, signPayment, unixNow } from "../../support/payments/signing.ts";
import { type ApiProcess, startApiStage } from "../../support/service/api-process.ts";
import { PAY_TO } from "../../support/service/environment.ts";

const KILLS = Number(process.env.KILLS ?? 8);
/** Enough payers for batches, which form while earlier ones are unmined. */
const PAYERS = 64;
/** The minimum number of purchases per payer, however slow the machine is. */
const EACH_BUYS = 1;
const seed = Number(process.env.KILL_SEED ?? Math.floor(Math.random() * 2 ** 31));
vi.setConfig({ testTimeout: 60_000 + KILLS * 6_000 });

/** The time after the last kill within which every payment must have its result. */
const ANSWERED_WITHIN_MS = 60_000;

let overSince = Number.POSITIVE_INFINITY;
const nodes: HoldingNode[] = [];
const running: ApiProcess[] = [];

interface Purchase {
  readonly nonce: string;
  readonly statuses: readonly number[];
  readonly text: string;
}

const stage = await forFile(startApiStage());
nodes.push(...(await Promise.all([0, 1].map(() => forFile(startHoldingNode(stage.chain))))));
running.push(...(await Promise.all(nodes.map((through) => stage.start(through)))));

test(`${KILLS} random kills under ${PAYERS} payers who retry each payment lead to one charge and one result per payment, and never to a 402`, async () => {
  onTestFailed(() => console.error(`KILLS=${KILLS} KILL_SEED=${seed}`));
  const payers: LocalAccount[] = [];
  while (payers.length < PAYERS) payers.push(await newPayer(stage.chain, 1_000_000_000n));
  const paying = Promise.all(payers.map(buyUntilOver));
  paying.catch(() => undefined);
  try {
    await Promise.all(nodes.map((_, slot) => killAgainAndAgain(slot, KILLS / nodes.length)));
  } finally {
    overSince = Date.now();
  }
  const bought = (await paying).flat();
  expect(bought.length).toBeGreaterThanOrEqual(PAYERS * EACH_BUYS);
  await expectEachBoughtOnce(bought);
});

/** Moments are counted in calls to the chain, so that slow and fast machines are killed at the same points. */
async function killAgainAndAgain(slot: number, kills: number): Promise<void> {
  const [random, through] = [chance(seed + slot), nodes[slot] as HoldingNode];
  for (let kill = 0; kill < kills; kill++) {
    const last = through.calls() + 1 + Math.floor(random() * 40);
    for (const deadline = Date.now() + 700; through.calls() < last && Date.now() < deadline; ) await sleep(2);
    await sleep(random() * 20);
    await running[slot]?.kill();
    await stage.endLeases();
    running[slot] = await stage.start(through);
  }
}

async function buyUntilOver(account: LocalAccount, index: number): Promise<Purchase[]> {
  const random = chance(seed + 100 + index);
  const bought: Purchase[] = [];
  while (Date.now() < overSince || bought.length < EACH_BUYS) {
    // Valid for longer than the test takes on a slow machine.
    bought.push(await buy(await signPayment(account, { validBefore: unixNow() + 3_600n }), random));
    // Leaves a slow machine enough time to start processes.
    await sleep(50);
  }
  return bought;
}

/** Sends the same header to random processes until the response is not a 503. */
async function buy(signed: Signed, random: () => number): Promise<Purchase> {
  const statuses: number[] = [];
  let text = "";
  for (; Date.now() < overSince + ANSWERED_WITHIN_MS; await sleep(100)) {
    const at = running[Math.floor(random() * running.length)] as ApiProcess;
    const answer = await post(`${at.url}/test/basic`, v2(signed)).catch(() => null);
    if (answer === null) continue;
    statuses.push(answer.status);
    text = answer.text;
    if (answer.status !== 503) break;
  }
  return { nonce: signed.authorization.nonce, statuses, text };
}

/** Expects one record and one stored response for each payment in the chain's logs, and none for any other payment. */
async function expectEachBoughtOnce(bought: readonly Purchase[]): Promise<void> {
  const unanswered = bought.filter(({ statuses }) => statuses.at(-1) !== 200);
  expect(unanswered.map(({ statuses, text }) => ({ statuses, text }))).toEqual([]);
  const payments = await paymentsOnChain({ chain: stage.chain.client });
  const paid = payments.filter(({ to }) => to.toLowerCase() === PAY_TO);
  const nonces = paid.map(({ nonce }) => nonce).sort();
  expect(nonces).toEqual(bought.map(({ nonce }) => nonce as string).sort());
  expect(new Set(paid.map(({ transaction }) => transaction)).size).toBeLessThan(paid.length);
  const certified = await stored("SELECT nonce, result AS text FROM certificate");
  expect(certified.map(([nonce]) => nonce).sort()).toEqual(nonces);
  const kept = await stored(
    "SELECT nonce, convert_from(response, 'UTF8') AS text FROM payment WHERE state = 'fulfilled'",
  );
  expect(new Map(kept)).toEqual(new Map(bought.map(({ nonce, text }) => [nonce, text])));
}

const stored = async (query: string) =>
  (await stage.owner.query<{ nonce: Buffer; text: string }>(query)).rows.map(
    ({ nonce, text }) => [`0x${nonce.toString("hex")}`, text] as const,
  );
