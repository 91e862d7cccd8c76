import { type Address, getAddress, type Hex, parseEventLogs } from "viem";
import { beforeAll, describe, expect, test } from "vitest";
import { escrowAbi } from "../../contracts/abi.ts";
import Escrow from "../../ignition/modules/Escrow.ts";
import { connectUsdc, USDC_ENVIRONMENTS } from "../support/chain/usdc-chain.ts";
import { deployEscrow, type EscrowChain, NO_RECORD, newPayer, type PaymentInfo, paymentId } from "./escrow-chain.ts";

const AMOUNT = 100_000_050n;
const FEE = 1_000_000n;
const RECORD: Hex = `0x${"ab".repeat(32)}`;
const TIMEOUT = 1_800n;

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

    test("A stranger can refund the buyer in second 1800 of the hold, and not in second 1799", async () => {
      const info = await sell();
      const held = (await escrow.client.getBlock()).timestamp;
      const refund = () => escrow.send(escrow.relayer, "refund", [info, NO_RECORD, "0x"]);
      await escrow.client.setNextBlockTimestamp({ timestamp: held + TIMEOUT - 1n });
      await expect(refund()).rejects.toThrow("NotYetRefundable");
      await escrow.client.setNextBlockTimestamp({ timestamp: held + TIMEOUT });
      await refund();
      expect(await escrow.balanceOf(info.payer)).toBe(AMOUNT);
    });

    test("Ignition deploys it with the roles of its parameters", async () => {
      const [arbiter, feeRecipient] = [escrow.arbiter.address, escrow.feeRecipient];
      const parameters = { Escrow: { usdc: environment.network.usdc.address, arbiter, feeRecipient } };
      const deployed = await escrow.connection.ignition.deploy(Escrow, { parameters });
      const { address } = deployed.escrow;
      const roles = (["USDC", "ARBITER", "FEE_RECIPIENT"] as const).map((functionName) =>
        escrow.client.readContract({ address, abi: escrowAbi, functionName }),
      );
      const usdc = getAddress(environment.network.usdc.address);
      expect(await Promise.all(roles)).toEqual([usdc, arbiter, feeRecipient]);
    });
  });
}
