import { keccak256, parseEventLogs } from "viem";
import { describe, expect, test } from "vitest";
import { NETWORKS } from "../../../api/platform/networks.ts";
import { SETTLEMENT_BATCH, settlementBatchAbi } from "../../../contracts/settlement-batch.ts";
import { devAccount } from "../../../scripts/embedded/dev-accounts.ts";
import { startTestChain } from "../../support/chain/chain.ts";
import { forFile } from "../../support/for-file.ts";
import { newPayer, settleCall, signPayment } from "../../support/payments/signing.ts";
import { PAY_TO } from "../../support/service/environment.ts";

const { address, codeHash } = SETTLEMENT_BATCH;

describe.each(["eip155:8453", "eip155:84532"] as const)("the settlement batch on %s", async (id) => {
  const network = NETWORKS[id];
  const { client, ...chain } = await forFile(startTestChain({ network: id }));

  test("is deployed to its address", async () => {
    expect(keccak256((await client.getCode({ address })) ?? "0x")).toBe(codeHash);
  });

  test("settles what is in order, and says what is not", async () => {
    const payers = [
      await newPayer({ client, ...chain }),
      devAccount(1),
      await newPayer({ client, ...chain }, 249_999n),
    ];
    const payments = await Promise.all(payers.map((payer) => signPayment(payer, {}, network)));
    const data = settleCall(payments, { token: network.usdc.address, to: PAY_TO, gasCap: 100_000n });
    const before = await chain.usdcBalance(PAY_TO);
    const hash = await client.sendTransaction({
      account: devAccount(0),
      to: address,
      data,
      gas: 60_000n + 3n * 106_000n,
    });
    const { status, logs } = await client.waitForTransactionReceipt({ hash });
    expect(status).toBe("success");
    const [event, ...others] = parseEventLogs({ abi: settlementBatchAbi, logs });
    expect([event?.args, others]).toEqual([{ failed: 4n, skipped: 0n }, []]);
    expect((await chain.usdcBalance(PAY_TO)) - before).toBe(500_000n);
  });
});
