import hre from "hardhat";
import { type Address, type ContractFunctionArgs, encodeAbiParameters, type Hex, keccak256, toHex } from "viem";
import { generatePrivateKey, type PrivateKeyAccount, privateKeyToAccount } from "viem/accounts";
import { escrowAbi } from "../../contracts/abi.ts";
import { devAccount } from "../../scripts/embedded/dev-accounts.ts";
import type { UsdcChain } from "../support/chain/usdc-chain.ts";
import { signReceiveAuthorization } from "../support/payments/authorization.ts";

/** The terms of a payment, as the contract's ABI has them. */
export type PaymentInfo = ContractFunctionArgs<typeof escrowAbi, "view", "getHash">[0];
export type EscrowChain = Awaited<ReturnType<typeof deployEscrow>>;
type Call = "authorize" | "release" | "refund" | "withdraw";

const ZERO: Address = "0x0000000000000000000000000000000000000000";
export const NO_RECORD: Hex = `0x${"00".repeat(32)}`;

const VERDICT = {
  Verdict: [
    { name: "paymentId", type: "bytes32" },
    { name: "release", type: "bool" },
    { name: "record", type: "bytes32" },
  ],
} as const;

const TYPE =
  "PaymentInfo(address operator,address payer,address receiver,address token,uint120 maxAmount,uint48 preApprovalExpiry,uint48 authorizationExpiry,uint48 refundExpiry,uint16 minFeeBps,uint16 maxFeeBps,address feeReceiver,uint256 salt)";
export const PAYMENT_INFO_TYPEHASH = keccak256(toHex(TYPE));

/** The id of base/commerce-payments, made without the contract; the payer's nonce is the one with `payer` zero. */
export function paymentId(
  { chainId, escrow }: { readonly chainId: number; readonly escrow: Address },
  info: PaymentInfo,
  payer: Address = info.payer,
): Hex {
  const [struct] = escrowAbi.filter((item) => item.type === "function" && item.name === "getHash");
  if (struct?.type !== "function") throw new Error("The ABI has no getHash.");
  const values = encodeAbiParameters([{ type: "bytes32" }, ...struct.inputs], [
    PAYMENT_INFO_TYPEHASH,
    { ...info, payer },
  ] as never);
  const outer = [{ type: "uint256" }, { type: "address" }, { type: "bytes32" }] as const;
  return keccak256(encodeAbiParameters(outer, [BigInt(chainId), escrow, keccak256(values)]));
}

/** An escrow on a chain with the real USDC; its arbiter is `arbiter`, and anybody's calls are sent by `relayer`. */
export async function deployEscrow(chain: UsdcChain) {
  const { client, network } = chain;
  const arbiter = devAccount(4);
  const relayer = devAccount(5).address;
  const feeRecipient = devAccount(6).address;
  const { bytecode } = await hre.artifacts.readArtifact("Escrow");
  const hash = await client.deployContract({
    account: relayer,
    chain: null,
    abi: escrowAbi,
    bytecode: bytecode as Hex,
    args: [network.usdc.address, arbiter.address, feeRecipient],
  });
  const { contractAddress: address } = await client.waitForTransactionReceipt({ hash });
  if (!address) throw new Error("The escrow was not deployed.");
  const now = async () => Number((await client.getBlock()).timestamp);

  const terms = async (fields: Partial<PaymentInfo> & Pick<PaymentInfo, "payer">): Promise<PaymentInfo> => ({
    operator: address,
    receiver: privateKeyToAccount(generatePrivateKey()).address,
    token: network.usdc.address,
    maxAmount: 100_000_000n,
    preApprovalExpiry: (await now()) + 600,
    authorizationExpiry: (await now()) + 86_400,
    refundExpiry: (await now()) + 86_400,
    minFeeBps: 100,
    maxFeeBps: 100,
    feeReceiver: feeRecipient,
    salt: BigInt(generatePrivateKey()),
    ...fields,
  });
  const signPayment = (payer: PrivateKeyAccount, info: PaymentInfo): Promise<Hex> =>
    signReceiveAuthorization(payer, network, {
      from: info.payer,
      to: address,
      value: info.maxAmount,
      validAfter: 0n,
      validBefore: BigInt(info.preApprovalExpiry),
      nonce: paymentId({ chainId: network.chainId, escrow: address }, info, ZERO),
    });
  const signVerdict = (info: PaymentInfo, release: boolean, record: Hex): Promise<Hex> =>
    arbiter.signTypedData({
      domain: {
        name: "Agent Payment Trust Escrow",
        version: "1",
        chainId: network.chainId,
        verifyingContract: address,
      },
      types: VERDICT,
      primaryType: "Verdict",
      message: { paymentId: paymentId({ chainId: network.chainId, escrow: address }, info), release, record },
    });
  const send = async <F extends Call>(account: Address, functionName: F, args: readonly unknown[]) => {
    // The union of functions is more than viem's types can follow.
    const call = { account, chain: null, address, abi: escrowAbi, functionName, args, gas: 400_000n } as never;
    return client.waitForTransactionReceipt({ hash: (await client.writeContract(call)) as Hex });
  };
  const hold = async (info: PaymentInfo, signature: Hex) =>
    send(relayer, "authorize", [info, info.maxAmount, address, signature]);
  return { ...chain, address, arbiter, relayer, feeRecipient, terms, signPayment, signVerdict, send, hold };
}

/** A new account with this much USDC, in atomic units. */
export async function newPayer(chain: Pick<UsdcChain, "fund">, usdc: bigint): Promise<PrivateKeyAccount> {
  const payer = privateKeyToAccount(generatePrivateKey());
  await chain.fund(payer.address, usdc);
  return payer;
}
