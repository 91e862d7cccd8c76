import { type Address, type Hex, parseEventLogs } from "viem";
import { beforeAll, describe, expect, test } from "vitest";
import { escrowAbi } from "../../contracts/abi.ts";
import { paymentId } from "../../packages/escrow/src/payment-info.ts";
import { connectUsdc, USDC_ENVIRONMENTS } from "../support/chain/usdc-chain.ts";
import { deployEscrow, type EscrowChain, newPayer, type PaymentInfo } from "./escrow-chain.ts";

const AMOUNT = 100_000_050n;
const FEE = 1_000_000n;
const RECORD: Hex = `0x${"ab".repeat(32)}`;

for (const environment of USDC_ENVIRONMENTS) {
  if (environment.skipped !== null)
    console.log(`The escrow on ${environment.title} is skipped: ${environment.skipped}`);
  describe.skipIf(environment.skipped !== null)(`the escrow on ${environment.title}`, () => {
    let escrow: EscrowChain;
    beforeAll(async () => {
      escrow = await deployEscrow(await connectUsdc(environment));
      return () => escrow.connection.close();
    });

    const sell = async (): Promise<PaymentInfo> => {
      const payer = await newPayer(escrow, AMOUNT);
      const info = await escrow.terms({ payer: payer.address, maxAmount: AMOUNT });
      await escrow.hold(info, await escrow.signPayment(payer, info));
      return info;
    };
    const owed = (account: Address) =>
      escrow.client.readContract({ address: escrow.address, abi: escrowAbi, functionName: "owed", args: [account] });
    const payment = (info: PaymentInfo) => {
      const id = paymentId({ chainId: environment.network.chainId, escrow: escrow.address }, info);
      const payments = { address: escrow.address, abi: escrowAbi, functionName: "payments" } as const;
      return escrow.client.readContract({ ...payments, args: [id] });
    };

    test("A payment is held, released by a verdict that a stranger submits, and its fee withdrawn", async () => {
      const info = await sell();
      expect((await payment(info))[0]).toBe(1);
      const before = await owed(escrow.feeRecipient);
      const verdict = await escrow.signVerdict(info, true, RECORD);
      const { logs } = await escrow.send(escrow.relayer, "release", [info, RECORD, verdict]);
      const [released] = parseEventLogs({ abi: escrowAbi, logs, eventName: "Released" });
      expect(released?.args).toMatchObject({ amount: AMOUNT, fee: FEE, record: RECORD, payer: info.payer });
      expect(await escrow.balanceOf(info.receiver)).toBe(AMOUNT - FEE);
      expect(await owed(escrow.feeRecipient)).toBe(before + FEE);
      const fees = await escrow.balanceOf(escrow.feeRecipient);
      await escrow.send(escrow.relayer, "withdraw", [escrow.feeRecipient]);
      expect(await escrow.balanceOf(escrow.feeRecipient)).toBe(fees + before + FEE);
    });
  });
}
