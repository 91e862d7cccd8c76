import { connect as openSocket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import type { LocalAccount } from "viem";
import { beforeEach, expect, test, vi } from "vitest";
import { STATEMENT_PRICE } from "../../../api/settlement-status/statement-request.ts";
import { withClient } from "../../../scripts/embedded/postgres.ts";
import { startHoldingNode } from "../../support/chain/nodes.ts";
import { forFile } from "../../support/for-file.ts";
import { chargedOnce, settlements } from "../../support/payments/on-chain.ts";
import { type Answer, post, v2 } from "../../support/payments/requests.ts";
import { newPayer, type Signed, signPayment, unixNow } from "../../support/payments/signing.ts";
import { startApiStage } from "../../support/service/api-process.ts";
import { binary, endBlocked } from "../../support/service/database.ts";
import { wire } from "../../support/settlement-status/statements.ts";

// However the process that sells a signed statement is killed, there is at most one charge and one statement, with the
// same bytes.

vi.setConfig({ testTimeout: 120_000 });
const PATIENT = { timeout: 60_000, interval: 10 };

const stage = await forFile(startApiStage());
const { chain } = stage;
const node = await forFile(startHoldingNode(chain));
const start = () => stage.start(node, { BATCH_MAX: "1" });
let api = await start();

let payer: LocalAccount;
let signed: Signed;
/** The authorization that the statement is about. It is a stranger's and is never used. */
let subject: Signed;
let body: string;

beforeEach(async () => {
  payer = await newPayer(chain);
  signed = await signPayment(payer, { value: STATEMENT_PRICE, validBefore: unixNow() + 3_600n });
  subject = await signPayment(await newPayer(chain), { validBefore: unixNow() + 3_600n });
  body = JSON.stringify({ network: "base", authorization: wire(subject), signature: subject.signature });
});

const buy = (): Promise<Answer> => post(`${api.url}/settlement`, v2(signed), body);
const stateOf = async (): Promise<string | null> => {
  const text = "SELECT state FROM payment WHERE nonce = $1";
  return (await stage.owner.query(text, [binary(signed.authorization.nonce)])).rows[0]?.state ?? null;
};
const ofSubject = () => subject.authorization.nonce;

async function killAndRestart(): Promise<void> {
  await api.kill();
  await stage.endLeases();
  api = await start();
}

async function sentAgain(): Promise<Answer> {
  for (const deadline = Date.now() + 60_000; ; await sleep(100)) {
    const answer = await buy();
    if (answer.status !== 503 || Date.now() > deadline) return answer;
  }
}

const isReplay = ({ headers }: Answer) => headers.get("x-idempotent-replay") === "true";

async function expectSoldOnce(answer: Answer): Promise<void> {
  expect({ status: answer.status, text: answer.text, log: api.output() }).toMatchObject({ status: 200 });
  expect(answer.body).toMatchObject({
    type: "SettlementStatement",
    conditional_on: null,
    settlement: { status: "pending", nonce: ofSubject() },
  });
  await chargedOnce(chain, signed);
  const again = await buy();
  expect([again.status, again.text, isReplay(again)]).toEqual([200, answer.text, true]);
  await chargedOnce(chain, signed);
}

/** Sends the request and waits until the process reaches the given point, still without a response. */
async function reaches(reached: Promise<unknown>): Promise<void> {
  const early = buy().then((answer) => Promise.reject(new Error(`too early: ${answer.status} ${answer.text}`)));
  // The kill closes this connection.
  early.catch(() => undefined);
  await Promise.race([reached, early]);
}

test("If a process is killed after settling but before making the statement, the statement is still sold once", async () => {
  const first = node.hold("eth_call", ofSubject());
  await withClient(stage.database.ownerUrl, async (client) => {
    await reaches(
      first.reached.then(async () => {
        await client.query("BEGIN");
        // Read before the chain is, once at intake and again for the sale.
        await client.query("LOCK TABLE authorization_fact IN ACCESS EXCLUSIVE MODE");
        first.release();
        await stage.untilBlocked("SELECT name, fact FROM authorization_fact");
      }),
    );
    expect([await stateOf(), (await settlements(chain, payer.address)).length]).toEqual(["settled", 1]);
    await api.kill();
    await endBlocked(stage.database, "SELECT name, fact FROM authorization_fact");
    await client.query("ROLLBACK");
  });
  await killAndRestart();
  await expectSoldOnce(await sentAgain());
});

test("If a process is killed after storing the statement but before its client has read it, the replay returns it", async () => {
  const { hostname, port } = new URL(api.url);
  const client = openSocket(Number(port), hostname).on("error", () => undefined);
  const headers = Object.entries(v2(signed)).map(([name, value]) => `${name}: ${value}\r\n`);
  const length = `Content-Type: application/json\r\nContent-Length: ${Buffer.byteLength(body)}\r\n`;
  client.write(`POST /settlement HTTP/1.1\r\nHost: ${hostname}\r\n${length}${headers.join("")}\r\n${body}`);
  await expect.poll(stateOf, PATIENT).toBe("fulfilled");
  await killAndRestart();
  client.destroy();
  const answer = await sentAgain();
  expect(isReplay(answer)).toBe(true);
  await expectSoldOnce(answer);
});
