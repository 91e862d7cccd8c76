import { AuthCaptureEvmScheme } from "@x402/evm/auth-capture/client";
import {
  type Address,
  concat,
  encodeAbiParameters,
  encodeFunctionData,
  getAddress,
  type Hex,
  parseEventLogs,
} from "viem";
import { beforeAll, describe, expect, test } from "vitest";
import { requireCommercePayments } from "../../api/payments/settle/holds.ts";
import { escrowAbi, operatorAbi } from "../../contracts/abi.ts";
import { COMMERCE_PAYMENTS } from "../../contracts/commerce-payments.ts";
import { paymentId } from "../../packages/escrow/src/payment-info.ts";
import { COMMERCE_ENVIRONMENTS, connectCommerce, connectUsdc, USDC_ENVIRONMENTS } from "../support/chain/usdc-chain.ts";
import { deployEscrow, deployOperator, type EscrowChain, newPayer, type PaymentInfo } from "./escrow-chain.ts";

const AMOUNT = 100_000_050n;
const FEE = 1_000_000n;
const RECORD: Hex = `0x${"ab".repeat(32)}`;
const HELD = 1;
const MAGIC_6492: Hex = `0x${"6492".repeat(16)}`;

const idOf = ({ network, custody }: EscrowChain, info: PaymentInfo) =>
  paymentId({ chainId: network.chainId, escrow: custody }, info);
const statusOf = async (at: EscrowChain, info: PaymentInfo) => {
  const call = { address: at.address, abi: escrowAbi, functionName: "payments", args: [idOf(at, info)] } as const;
  return (await at.client.readContract(call))[0];
};

/** A held payment of a new payer. */
async function sell(at: EscrowChain): Promise<PaymentInfo> {
  const payer = await newPayer(at, AMOUNT);
  const info = await at.terms({ payer: payer.address, maxAmount: AMOUNT });
  await at.hold(info, await at.signPayment(payer, info));
  expect(await statusOf(at, info)).toBe(HELD);
  return info;
}

for (const environment of USDC_ENVIRONMENTS) {
  if (environment.skipped !== null)
    console.log(`The escrow on ${environment.title} is skipped: ${environment.skipped}`);
  describe.skipIf(environment.skipped !== null)(`the escrow on ${environment.title}`, () => {
    let escrow: EscrowChain;
    beforeAll(async () => {
      escrow = await deployEscrow(await connectUsdc(environment));
      return () => escrow.connection.close();
    });
    const owed = (account: Address) =>
      escrow.client.readContract({ address: escrow.address, abi: escrowAbi, functionName: "owed", args: [account] });

    test("A payment is held, released by a verdict that a stranger submits, and its fee withdrawn", async () => {
      const info = await sell(escrow);
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

for (const environment of COMMERCE_ENVIRONMENTS) {
  if (environment.skipped !== null)
    console.log(`The operator on ${environment.title} is skipped: ${environment.skipped}`);
  describe.skipIf(environment.skipped !== null)(`the operator on ${environment.title}`, () => {
    const { network } = environment;
    let operator: EscrowChain;
    beforeAll(async () => {
      operator = await deployOperator(await connectCommerce(environment));
      return () => operator.connection.close();
    });

    const wrapped = (target: Address, data: Hex, signature: Hex): Hex =>
      concat([
        encodeAbiParameters([{ type: "address" }, { type: "bytes" }, { type: "bytes" }], [target, data, signature]),
        MAGIC_6492,
      ]);

    test("base/commerce-payments passes the checks of a deployment", async () => {
      await requireCommercePayments(await operator.connection.viem.getPublicClient());
    });

    // This test must be first, because the client uses the clock, and later tests move the chain ahead of it.
    test("The stock client's payment for terms with our operator is held", async () => {
      const payer = await newPayer(operator, AMOUNT);
      const now = Number((await operator.client.getBlock()).timestamp);
      const fields = { authorizationExpiry: now + 86_520, refundExpiry: now + 86_520 };
      const info = await operator.terms({ payer: payer.address, maxAmount: AMOUNT, ...fields });
      const requirements = {
        scheme: "auth-capture",
        network: network.id,
        asset: network.usdc.address,
        amount: String(AMOUNT),
        payTo: info.receiver,
        maxTimeoutSeconds: 120,
        extra: {
          name: network.usdc.name,
          version: network.usdc.version,
          authCaptureEscrow: COMMERCE_PAYMENTS.escrow,
          captureAuthorizer: getAddress(operator.address),
          operatorType: "custom",
          paymentFlow: "escrow",
          captureMode: "deferred",
          assetTransferMethod: "eip3009",
          captureDeadline: info.authorizationExpiry,
          refundDeadline: info.refundExpiry,
          feeRecipient: info.feeReceiver,
          minFeeBps: 100,
          maxFeeBps: 100,
        },
      } as const;
      const { payload } = await new AuthCaptureEvmScheme(payer).createPaymentPayload(2, requirements);
      const { authorization, signature, salt } = payload as {
        readonly authorization: { readonly validBefore: string; readonly nonce: Hex; readonly to: Address };
        readonly signature: Hex;
        readonly salt: Hex;
      };
      expect(authorization.to).toBe(COMMERCE_PAYMENTS.collector);
      const signed = { ...info, preApprovalExpiry: Number(authorization.validBefore), salt: BigInt(salt) };
      await operator.hold(signed, signature);
      expect(await statusOf(operator, signed)).toBe(HELD);
    });

    test("A payment is held and released by a verdict that a stranger submits, and the fee is paid immediately", async () => {
      const info = await sell(operator);
      const fees = await operator.balanceOf(operator.feeRecipient);
      const verdict = await operator.signVerdict(info, true, RECORD);
      const { logs } = await operator.send(operator.relayer, "release", [info, RECORD, verdict]);
      const [released] = parseEventLogs({ abi: operatorAbi, logs, eventName: "Released" });
      expect(released?.address.toLowerCase()).toBe(operator.address.toLowerCase());
      expect(released?.args).toMatchObject({ id: idOf(operator, info), amount: AMOUNT, fee: FEE, record: RECORD });
      expect(await operator.balanceOf(info.receiver)).toBe(AMOUNT - FEE);
      expect(await operator.balanceOf(operator.feeRecipient)).toBe(fees + FEE);
    });

    test("A preparing call that reenters the operator changes nothing", async () => {
      const payer = await newPayer(operator, 2n * AMOUNT);
      const info = await operator.terms({ payer: payer.address, maxAmount: AMOUNT });
      const signature = await operator.signPayment(payer, info);
      const verdict = await operator.signVerdict(info, false, RECORD);
      const calls = [
        encodeFunctionData({
          abi: operatorAbi,
          functionName: "authorize",
          args: [info, AMOUNT, operator.collector, signature],
        }),
        encodeFunctionData({ abi: operatorAbi, functionName: "refund", args: [info, RECORD, verdict] }),
      ];
      for (const [index, call] of calls.entries()) {
        const id = await operator.client.snapshot();
        const { logs } = await operator.hold(info, wrapped(operator.address, call, signature));
        expect(
          parseEventLogs({ abi: operatorAbi, logs }).map(({ eventName }) => eventName),
          `call ${index}`,
        ).toEqual(["Held"]);
        expect(await statusOf(operator, info)).toBe(HELD);
        expect(await operator.balanceOf(info.payer)).toBe(AMOUNT);
        await operator.client.revert({ id });
      }
    });
  });
}
