import type { Hex, LocalAccount } from "viem";
import { beforeEach, describe, expect, test, vi } from "vitest";
import { eachNetwork } from "../../../api/platform/networks.ts";
import { withClient } from "../../../scripts/embedded/postgres.ts";
import { startTestChain } from "../../support/chain/chain.ts";
import { leaveAt, startFaultyNode } from "../../support/chain/nodes.ts";
import {
  deployEscrow,
  END_TURNS,
  type EscrowScene,
  expectOutcome,
  type Held,
  hold,
  newMerchant,
  PATIENT,
  requestedOutcomes,
  statusOf,
} from "../../support/escrow/contract.ts";
import { deliver, EMPTY, GOOD } from "../../support/escrow/delivery.ts";
import { forFile } from "../../support/for-file.ts";
import { binary } from "../../support/service/database.ts";
import { startService } from "../../support/service/service.ts";

describe("escrow outcomes on an unstable chain", async () => {
  // Whatever happens to the chain, the outcome of an escrow payment is executed once.

  vi.setConfig({ testTimeout: 90_000 });

  let one: Held;
  let merchant: LocalAccount;

  const chain = await forFile(startTestChain({ slotsInAnEpoch: 3 }));
  const at: EscrowScene = { chain, escrow: await deployEscrow(chain) };
  const faulty = await forFile(startFaultyNode(chain));
  const rpcUrls = eachNetwork(() => faulty.url);
  const service = await forFile(startService({ chain, config: { rpcUrls, escrowAddresses: [at.escrow.address] } }));
  // anvil has the state of loaded blocks only at its head, so the finalized block must be one that it has mined.
  await chain.mine(10);

  beforeEach(async () => {
    merchant = newMerchant();
    one = await hold(at, merchant.address);
  });

  const query = (text: string, values: unknown[] = []) =>
    withClient(service.database.ownerUrl, (client) => client.query(text, values));
  const lookAgain = () => query(END_TURNS);
  const task = "SELECT state FROM escrow_task WHERE payment = $1";
  const stateOf = async () => (await query(task, [binary(one.id)])).rows[0].state;
  const reorganize = (depth: number) =>
    at.chain.client.request({ method: "anvil_reorg", params: [depth, []] } as never);

  test.each(["unheard", "heard"] as const)(
    "If the node fails at the broadcast (%s), the refund is executed once",
    async (heard) => {
      const left = leaveAt(faulty, "eth_sendRawTransaction", heard);
      const answer = await deliver(service, merchant, { ...one, ...EMPTY });
      expect(answer.body).toMatchObject({ decision: "refund", status: "pending" });
      await left;
      faulty.become(null);
      await expectOutcome(at, one, "refund");
      expect(await requestedOutcomes(at, one)).toHaveLength(1);
    },
  );

  test("A release that a reorganization removes is sent again until it is final", async () => {
    await deliver(service, merchant, { ...one, ...GOOD });
    await expectOutcome(at, one, "release");
    await expect.poll(stateOf, PATIENT).toBe("mined");
    await reorganize(1);
    expect(await statusOf(at, one)).toBe("held");
    await expectOutcome(at, one, "release");
    await at.chain.mine(8);
    await lookAgain();
    await expect.poll(stateOf, PATIENT).toBe("final");
  });

  test("If a reorganization removes the hold, the release follows once the hold is mined again", async () => {
    await deliver(service, merchant, { ...one, ...GOOD });
    await expectOutcome(at, one, "release");
    const asked = { method: "eth_getRawTransactionByHash", params: [one.transaction] } as never;
    const raw = await at.chain.client.request(asked);
    await reorganize(2);
    expect(await statusOf(at, one)).toBe("none");
    await lookAgain();
    await expect.poll(stateOf, PATIENT).toBe("open");
    await at.chain.client.sendRawTransaction({ serializedTransaction: raw as Hex });
    await expect.poll(() => statusOf(at, one), PATIENT).not.toBe("none");
    await lookAgain();
    await expectOutcome(at, one, "release");
  });
});
