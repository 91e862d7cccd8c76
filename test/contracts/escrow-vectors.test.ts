import { AuthCaptureEvmScheme } from "@x402/evm/auth-capture/client";
import { type Address, type Hex, hashTypedData, keccak256, toHex } from "viem";
import { generatePrivateKey, privateKeyToAccount } from "viem/accounts";
import { beforeAll, describe, expect, test } from "vitest";
import { NETWORKS } from "../../api/platform/networks.ts";
import { escrowAbi } from "../../contracts/abi.ts";
import { connectUsdc } from "../support/chain/usdc-chain.ts";
import { deployEscrow, type EscrowChain, PAYMENT_INFO_TYPEHASH, type PaymentInfo, paymentId } from "./escrow-chain.ts";

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
