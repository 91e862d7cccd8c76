import { AuthCaptureEvmScheme } from "@x402/evm/auth-capture/client";
import fc from "fast-check";
import { type Address, getAddress, type Hex } from "viem";
import { generatePrivateKey, privateKeyToAccount } from "viem/accounts";
import { expect, test } from "vitest";
import { escrowAbi } from "../../../contracts/abi.ts";
import {
  PAYMENT_INFO_TYPEHASH,
  type PaymentInfo,
  payerAgnosticNonce,
  paymentId,
} from "../../../packages/escrow/src/index.ts";
import { startTestChain } from "../../support/chain/chain.ts";
import { deployEscrow } from "../../support/escrow/contract.ts";
import { forFile } from "../../support/for-file.ts";

const chain = await forFile(startTestChain());
const escrow = await deployEscrow(chain);

const anAddress = fc
  .uint8Array({ minLength: 20, maxLength: 20 })
  .map((bytes) => getAddress(`0x${Buffer.from(bytes).toString("hex")}`));
const time = fc.nat(2 ** 31).map((low) => low * 2 ** 16 + (low % 2 ** 16));
const bps = fc.nat(65_535);
const terms = fc.record({
  operator: anAddress,
  payer: anAddress,
  receiver: anAddress,
  token: anAddress,
  maxAmount: fc.bigInt({ min: 0n, max: 2n ** 120n - 1n }),
  preApprovalExpiry: time,
  authorizationExpiry: time,
  refundExpiry: time,
  minFeeBps: bps,
  maxFeeBps: bps,
  feeReceiver: anAddress,
  salt: fc.bigInt({ min: 0n, max: 2n ** 256n - 1n }),
}) satisfies fc.Arbitrary<PaymentInfo>;

const read = (functionName: "getHash" | "getPayerAgnosticHash", info: PaymentInfo): Promise<Hex> =>
  chain.client.readContract({ address: escrow.address, abi: escrowAbi, functionName, args: [info] });

test("id and nonce of any terms are the contract's", async () => {
  const place = { chainId: chain.network.chainId, escrow: escrow.address };
  const check = async (info: PaymentInfo) => {
    expect(paymentId(place, info)).toBe(await read("getHash", info));
    expect(payerAgnosticNonce(place, info)).toBe(await read("getPayerAgnosticHash", info));
  };
  await fc.assert(fc.asyncProperty(terms, check), { numRuns: 50 });
});

test("the type hash is the contract's", async () => {
  const call = { address: escrow.address, abi: escrowAbi, functionName: "PAYMENT_INFO_TYPEHASH" } as const;
  expect(PAYMENT_INFO_TYPEHASH).toBe(await chain.client.readContract(call));
});

test("the nonce is the one that @x402/evm signs for an escrow of commerce-payments", async () => {
  const deployed: Address = "0xf96815976523E00e65Be8f34cA5e64b4f41EB19c";
  const payer = privateKeyToAccount(generatePrivateKey());
  const operator = privateKeyToAccount(generatePrivateKey()).address;
  const feeReceiver = privateKeyToAccount(generatePrivateKey()).address;
  const extra = {
    name: "USD Coin",
    version: "2",
    captureAuthorizer: operator,
    feeRecipient: feeReceiver,
    captureDeadline: 1_900_000_000,
    refundDeadline: 1_900_086_400,
    minFeeBps: 0,
    maxFeeBps: 250,
    authCaptureEscrow: deployed,
  };
  const token = getAddress(chain.network.usdc.address);
  const receiver = privateKeyToAccount(generatePrivateKey()).address;
  const offered = {
    scheme: "auth-capture",
    network: "eip155:8453",
    amount: "123456",
    asset: token,
    payTo: receiver,
  } as const;
  const scheme = new AuthCaptureEvmScheme(payer);
  const { payload } = await scheme.createPaymentPayload(2, { ...offered, maxTimeoutSeconds: 120, extra });
  const { authorization, salt } = payload as { authorization: { nonce: Hex; validBefore: string }; salt: Hex };
  const info: PaymentInfo = {
    operator,
    payer: payer.address,
    receiver,
    token,
    maxAmount: 123_456n,
    preApprovalExpiry: Number(authorization.validBefore),
    authorizationExpiry: extra.captureDeadline,
    refundExpiry: extra.refundDeadline,
    minFeeBps: 0,
    maxFeeBps: 250,
    feeReceiver,
    salt: BigInt(salt),
  };
  const place = { chainId: 8453, escrow: deployed };
  expect(payerAgnosticNonce(place, info)).toBe(authorization.nonce);
  expect(paymentId(place, info)).not.toBe(authorization.nonce);
});

test("id and nonce of fixed terms are as written down", () => {
  const info: PaymentInfo = {
    operator: "0x1111111111111111111111111111111111111111",
    payer: "0x2222222222222222222222222222222222222222",
    receiver: "0x3333333333333333333333333333333333333333",
    token: "0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913",
    maxAmount: 100_000n,
    preApprovalExpiry: 1_800_000_120,
    authorizationExpiry: 1_800_086_400,
    refundExpiry: 1_800_172_800,
    minFeeBps: 100,
    maxFeeBps: 100,
    feeReceiver: "0x4444444444444444444444444444444444444444",
    salt: 1n,
  };
  const place = { chainId: 8453, escrow: info.operator };
  expect(PAYMENT_INFO_TYPEHASH).toBe("0xae68ac7ce30c86ece8196b61a7c486d8f0061f575037fbd34e7fe4e2820c6591");
  expect(paymentId(place, info)).toBe("0x324fba1400e88ef8b6cdead3a7c3b0b8a98b48b1d9a17a10b990d3cec9efb57a");
  expect(payerAgnosticNonce(place, info)).toBe("0x1c5476bcc0c9221d5a80bce2a2d5f4b0c6e3e54e5a60a3f81d4f5e52a758ed48");
});
