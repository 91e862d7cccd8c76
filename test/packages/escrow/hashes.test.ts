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
import { anyTerms } from "../../support/escrow/any-terms.ts";
import { deployEscrow } from "../../support/escrow/contract.ts";
import { forFile } from "../../support/for-file.ts";

const chain = await forFile(startTestChain());
const escrow = await deployEscrow(chain);

const read = (functionName: "getHash" | "getPayerAgnosticHash", info: PaymentInfo): Promise<Hex> =>
  chain.client.readContract({ address: escrow.address, abi: escrowAbi, functionName, args: [info] });

test("The id and the nonce of any terms are the same as the contract's", async () => {
  const place = { chainId: chain.network.chainId, escrow: escrow.address };
  const check = async (info: PaymentInfo) => {
    expect(paymentId(place, info)).toBe(await read("getHash", info));
    expect(payerAgnosticNonce(place, info)).toBe(await read("getPayerAgnosticHash", info));
  };
  await fc.assert(fc.asyncProperty(anyTerms, check), { numRuns: 50 });
});

test("The type hash is the same as the contract's", async () => {
  const call = { address: escrow.address, abi: escrowAbi, functionName: "PAYMENT_INFO_TYPEHASH" } as const;
  expect(PAYMENT_INFO_TYPEHASH).toBe(await chain.client.readContract(call));
});

test("The nonce is the one that @x402/evm signs for an escrow of commerce-payments", async () => {
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
