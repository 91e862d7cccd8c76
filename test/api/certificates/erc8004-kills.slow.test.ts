import { expect, test, vi } from "vitest";
import { ERC8004 } from "../../../contracts/erc8004.ts";
import { feedbackFor, newAgent, PUBLISHER } from "../../support/certificates/publishing.ts";
import { startHoldingNode } from "../../support/chain/nodes.ts";
import { eventually } from "../../support/eventually.ts";
import { forFile } from "../../support/for-file.ts";
import { post, send, v2 } from "../../support/payments/requests.ts";
import { signPayment } from "../../support/payments/signing.ts";
import { startApiStage } from "../../support/service/api-process.ts";
import { binary, eachPayment, hexOf } from "../../support/service/database.ts";

vi.setConfig({ testTimeout: 120_000 });

const stage = await forFile(startApiStage());
const { chain, owner } = stage;
const node = await forFile(startHoldingNode(chain));
const on = { ERC8004_FEEDBACK: "on" };

/** What the end of a lease, and seconds of waiting, do. */
const endLeases = async () => {
  await owner.query("UPDATE publication SET next_attempt_at = now()");
  await owner.query(eachPayment("next_attempt_at = now()", "final_at IS NULL"));
  await owner.query("UPDATE relay SET tended_at = tended_at - interval '1 minute'");
};

test("a publisher killed with SIGKILL gives the feedback once: before its transaction is broadcast, and after it is mined", async () => {
  await chain.setBalance(PUBLISHER, 10n ** 18n);
  const agent = await newAgent(chain);
  const broadcasting = node.hold("eth_sendRawTransaction", ERC8004.reputation);
  const first = await stage.start(node, on);
  const body = JSON.stringify({ erc8004: { agentId: String(agent.id) } });
  const answer = await post(`${first.url}/test/basic`, v2(await signPayment(agent.account)), body);
  expect(answer.status).toBe(200);
  await broadcasting.reached;
  await first.kill();
  expect(await feedbackFor(chain, agent)).toEqual([]);

  await chain.client.setAutomine(false);
  await endLeases();
  const { rows } = await owner.query("SELECT hashes[1] AS hash FROM relay WHERE sender = $1", [binary(PUBLISHER)]);
  // Not only the upkeep takes it up: its publication waits for this very transaction.
  const following = node.hold("eth_getTransactionReceipt", hexOf(rows[0].hash));
  const second = await stage.start(node, on);
  await eventually(async () => {
    await endLeases();
    return (await chain.client.getTxpoolStatus()).pending;
  }, 1);
  await following.reached;
  following.release();
  // Whose wallet is the agent's is asked once more as of the block, before anything is recorded.
  const recording = node.hold("eth_call", ERC8004.identity);
  await chain.client.setAutomine(true);
  await chain.mine();
  await recording.reached;
  await second.kill();
  expect(await feedbackFor(chain, agent)).toHaveLength(1);

  await endLeases();
  const third = await stage.start(node, on);
  const entries = async () => {
    await endLeases();
    const { body } = await send(`${third.url}/cert/${answer.body.id}`, { headers: { accept: "application/json" } });
    return (body.erc8004 as { status: string }[]).map(({ status }) => status);
  };
  await eventually(entries, ["published"]);
  await chain.finalize();
  const stored = async () => {
    await endLeases();
    return (await owner.query("SELECT state FROM publication")).rows;
  };
  await eventually(stored, [{ state: "published" }]);
  expect(await feedbackFor(chain, agent)).toEqual([
    { value: 1n, tag1: "x402-certificate", tag2: "basic", isRevoked: false },
  ]);
  expect((await owner.query("SELECT FROM relay WHERE sender = decode($1, 'hex')", [PUBLISHER.slice(2)])).rowCount).toBe(
    1,
  );
});
