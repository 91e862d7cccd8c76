import { AuthCaptureEvmScheme } from "@x402/evm/auth-capture/client";
import { type Address, getAddress, type Hex, hashTypedData, keccak256, parseEventLogs, toHex } from "viem";
import { generatePrivateKey, privateKeyToAccount } from "viem/accounts";
import { beforeAll, describe, expect, test } from "vitest";
import { NETWORKS } from "../../api/platform/networks.ts";
import { escrowAbi } from "../../contracts/abi.ts";
import Escrow from "../../ignition/modules/Escrow.ts";
import { connectUsdc, USDC_ENVIRONMENTS } from "../support/chain/usdc-chain.ts";
import {
  deployEscrow,
  type EscrowChain,
  NO_RECORD,
  newPayer,
  PAYMENT_INFO_TYPEHASH,
  type PaymentInfo,
  paymentId,
} from "./escrow-chain.ts";

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

    test("a payment is held, released by a verdict that a stranger carries, and its fee withdrawn", async () => {
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

    test("the arbiter refunds in full", async () => {
      const info = await sell();
      await escrow.send(escrow.arbiter.address, "refund", [info, RECORD, "0x"]);
      expect(await escrow.balanceOf(info.payer)).toBe(AMOUNT);
      expect((await payment(info))[0]).toBe(3);
    });

    test("a stranger refunds the buyer in second 1800 of the hold, and not in second 1799", async () => {
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

const NETWORK = NETWORKS["eip155:8453"];
const ZERO: Address = "0x0000000000000000000000000000000000000000";
/** Where base/commerce-payments is deployed, as the stock client of x402 knows it. */
const COMMERCE: Address = "0xf96815976523E00e65Be8f34cA5e64b4f41EB19c";

/** A payment whose hashes are written down, so that no two sides can be wrong together later. */
const VECTOR: PaymentInfo = {
  operator: "0x1111111111111111111111111111111111111111",
  payer: "0x2222222222222222222222222222222222222222",
  receiver: "0x3333333333333333333333333333333333333333",
  token: NETWORK.usdc.address,
  maxAmount: 100_000_000n,
  preApprovalExpiry: 1_800_000_600,
  authorizationExpiry: 1_800_086_400,
  refundExpiry: 1_800_172_800,
  minFeeBps: 100,
  maxFeeBps: 100,
  feeReceiver: "0x4444444444444444444444444444444444444444",
  salt: 0x5555n,
};
const VECTOR_TYPEHASH: Hex = "0xae68ac7ce30c86ece8196b61a7c486d8f0061f575037fbd34e7fe4e2820c6591";
const VECTOR_ID: Hex = "0x558daed9a2680926a6dfb07aef142f0b34fd72e2956fa4e6a880269be44df6d9";
const VECTOR_NONCE: Hex = "0x3cb003aafe4ca2cfdcfa5571067ecf7cb6d8a3eeb5157b7cd717be62a7b4a549";

describe("ids, nonces and typehash are those of base/commerce-payments", () => {
  let escrow: EscrowChain;
  beforeAll(async () => {
    escrow = await deployEscrow(
      await connectUsdc({ title: "", hardhatNetwork: "simulatedBase", network: NETWORK, skipped: null }),
    );
    // The same code where the reference is: ids bind the address.
    const bytecode = await escrow.client.getCode({ address: escrow.address });
    if (bytecode !== undefined) await escrow.client.setCode({ address: COMMERCE, bytecode });
    return () => escrow.connection.close();
  });

  const read = (functionName: "getHash" | "getPayerAgnosticHash", info: PaymentInfo): Promise<Hex> =>
    escrow.client.readContract({ address: COMMERCE, abi: escrowAbi, functionName, args: [info] });

  test("a written-down payment", async () => {
    expect(PAYMENT_INFO_TYPEHASH).toBe(VECTOR_TYPEHASH);
    expect(
      await escrow.client.readContract({
        address: escrow.address,
        abi: escrowAbi,
        functionName: "PAYMENT_INFO_TYPEHASH",
      }),
    ).toBe(VECTOR_TYPEHASH);
    expect(await read("getHash", VECTOR)).toBe(VECTOR_ID);
    expect(await read("getPayerAgnosticHash", VECTOR)).toBe(VECTOR_NONCE);
    expect(paymentId({ chainId: NETWORK.chainId, escrow: COMMERCE }, VECTOR)).toBe(VECTOR_ID);
    expect(paymentId({ chainId: NETWORK.chainId, escrow: COMMERCE }, VECTOR, ZERO)).toBe(VECTOR_NONCE);
  });

  test("the stock client of x402 signs the same nonce", async () => {
    const payer = privateKeyToAccount(generatePrivateKey());
    const requirements = {
      scheme: "auth-capture",
      network: NETWORK.id,
      asset: NETWORK.usdc.address,
      amount: "100000000",
      payTo: VECTOR.receiver,
      maxTimeoutSeconds: 600,
      extra: {
        name: NETWORK.usdc.name,
        version: NETWORK.usdc.version,
        captureAuthorizer: VECTOR.operator,
        captureDeadline: VECTOR.authorizationExpiry,
        refundDeadline: VECTOR.refundExpiry,
        minFeeBps: 100,
        maxFeeBps: 100,
        feeRecipient: VECTOR.feeReceiver,
      },
    } as const;
    const { payload } = await new AuthCaptureEvmScheme(payer).createPaymentPayload(2, requirements);
    const { authorization, salt } = payload as {
      readonly authorization: { readonly nonce: Hex; readonly validBefore: string };
      readonly salt: Hex;
    };
    const info = {
      ...VECTOR,
      payer: payer.address,
      preApprovalExpiry: Number(authorization.validBefore),
      salt: BigInt(salt),
    };
    expect(await read("getPayerAgnosticHash", info)).toBe(authorization.nonce);
    expect(await read("getHash", info)).not.toBe(authorization.nonce);
  });

  test("the arbiter's verdict is plain EIP-712", async () => {
    const record = keccak256(toHex("record"));
    const info = { ...VECTOR, operator: escrow.address };
    const digest = hashTypedData({
      domain: {
        name: "Agent Payment Trust Escrow",
        version: "1",
        chainId: NETWORK.chainId,
        verifyingContract: escrow.address,
      },
      types: {
        Verdict: [
          { name: "paymentId", type: "bytes32" },
          { name: "release", type: "bool" },
          { name: "record", type: "bytes32" },
        ],
      },
      primaryType: "Verdict",
      message: {
        paymentId: paymentId({ chainId: NETWORK.chainId, escrow: escrow.address }, info),
        release: true,
        record,
      },
    });
    expect(await escrow.signVerdict(info, true, record)).toBe(await escrow.arbiter.sign?.({ hash: digest }));
  });
});
