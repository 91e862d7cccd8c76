import { type LocalAccount, parseEventLogs } from "viem";
import { beforeEach, describe, expect, test, vi } from "vitest";
import { operatorAbi } from "../../../contracts/abi.ts";
import { withClient } from "../../../scripts/embedded/postgres.ts";
import { type Hold, startHoldingNode } from "../../support/chain/nodes.ts";
import { openOperator, signedFor, type WirePayment } from "../../support/escrow/auth-capture.ts";
import { END_TURNS, PATIENT } from "../../support/escrow/contract.ts";
import { encodeHeader } from "../../support/escrow/sale.ts";
import { forFile } from "../../support/for-file.ts";
import { type Answer, post } from "../../support/payments/requests.ts";
import { newPayer } from "../../support/payments/signing.ts";
import { startApiStage } from "../../support/service/api-process.ts";

vi.setConfig({ testTimeout: 120_000 });

const stage = await forFile(startApiStage());
const { chain } = stage;
const operator = await openOperator(chain);
const node = await forFile(startHoldingNode(chain));
// Holds that share transactions have tests of their own.
const start = () => stage.start(node, { ESCROW_ADDRESSES: operator.address, BATCH_MAX: "1" });
let api = await start();

let buyer: LocalAccount;
let payment: WirePayment;
const pay = (): Promise<Answer> => post(`${api.url}/escrow/demo`, { "PAYMENT-SIGNATURE": encodeHeader(payment) });

beforeEach(async () => {
  buyer = await newPayer(chain, 1_000_000n);
  payment = await signedFor(`${api.url}/escrow/demo`, buyer);
});

async function killAndRestart(): Promise<void> {
  await api.kill();
  await stage.endLeases();
  await withClient(stage.database.ownerUrl, (client) => client.query(END_TURNS));
  api = await start();
}

/** Where the process stands when it is killed, as the node sees it: with a call that carries the buyer's address. */
const calls = (method: string) => node.hold(method, buyer.address);
const second = async (method: string): Promise<Hold> => {
  const first = calls(method);
  await first.reached;
  const next = calls(method);
  first.release();
  return next;
};

/** What the operator's log has of the buyer. */
async function eventsOfBuyer(): Promise<readonly string[]> {
  const logs = await chain.client.getLogs({ address: operator.address, fromBlock: 0n });
  return parseEventLogs({ abi: operatorAbi, logs })
    .filter(({ args }) => "payer" in args && args.payer === buyer.address)
    .map(({ eventName }) => eventName);
}

describe("a process killed with SIGKILL sells once, for one hold and one release", () => {
  test.each([
    ["before it sends the hold", async () => calls("eth_estimateGas")],
    ["when it has stored the hold but not broadcast it", async () => calls("eth_sendRawTransaction")],
    ["when it has stored the release but not broadcast it", () => second("eth_sendRawTransaction")],
  ])("%s", async (_, trap) => {
    const trapped = trap();
    const cut = pay().catch(() => null);
    await (await trapped).reached;
    await killAndRestart();
    await cut;
    const answer = { latest: await pay() };
    const served = async () => {
      if (answer.latest.status === 503) answer.latest = await pay();
      return answer.latest.status;
    };
    await expect.poll(served, PATIENT).toBe(200);
    await expect.poll(eventsOfBuyer, PATIENT).toEqual(["Held", "Released"]);
    expect(await chain.usdcBalance(buyer.address)).toBe(900_000n);
    const again = await pay();
    expect([again.status, again.headers.get("x-idempotent-replay"), again.text]).toEqual([
      200,
      "true",
      answer.latest.text,
    ]);
    expect(await eventsOfBuyer()).toEqual(["Held", "Released"]);
  });
});
