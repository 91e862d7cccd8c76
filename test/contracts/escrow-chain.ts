import hre from "hardhat";
import {
  type Abi,
  type Address,
  type ContractFunctionArgs,
  encodeAbiParameters,
  type Hex,
  keccak256,
  toHex,
} from "viem";
import { generatePrivateKey, type PrivateKeyAccount, privateKeyToAccount } from "viem/accounts";
import { escrowAbi } from "../../contracts/abi.ts";
import { COMMERCE_PAYMENTS } from "../../contracts/commerce-payments.ts";
import { devAccount } from "../../scripts/embedded/dev-accounts.ts";
import type { UsdcChain } from "../support/chain/usdc-chain.ts";
import { signReceiveAuthorization } from "../support/payments/signing.ts";

/** The terms of a payment, as in the contract's ABI. */
export type PaymentInfo = ContractFunctionArgs<typeof escrowAbi, "view", "getHash">[0];
/** An escrow or an operator, which have the same calls. */
export type EscrowChain = ReturnType<typeof callsOf>;
type Call = "authorize" | "release" | "refund" | "withdraw";

const ZERO: Address = "0x0000000000000000000000000000000000000000";
/** Enough for the operator's most expensive hold, which also deploys a smart wallet. */
const GAS = 2_000_000n;
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
const PAYMENT_INFO_TYPEHASH = keccak256(toHex(TYPE));

/** The id in base/commerce-payments, computed without the contract. With `payer` zero it is the payer's nonce. */
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

const ARBITER = devAccount(4);
const RELAYER = devAccount(5).address;
const FEE_RECIPIENT = devAccount(6).address;

/**
 * Deploys an escrow on a chain with the real USDC. Its arbiter is `arbiter`, and `relayer` sends calls that anybody may
 * send.
 */
export async function deployEscrow(chain: UsdcChain) {
  const args = [chain.network.usdc.address, ARBITER.address, FEE_RECIPIENT];
  const address = await deploy(chain, "Escrow", args);
  return callsOf(chain, { address, custody: address, collector: address });
}

/** Deploys an operator in the same way, over base/commerce-payments, which the chain must have. */
export async function deployOperator(chain: UsdcChain) {
  const { escrow: custody, collector, feeIsAmount } = COMMERCE_PAYMENTS;
  const args = [custody, collector, chain.network.usdc.address, ARBITER.address, FEE_RECIPIENT, feeIsAmount];
  return callsOf(chain, { address: await deploy(chain, "ArbiterOperator", args), custody, collector });
}

/** The calls of base/commerce-payments for an account that is itself the operator. */
export const operatedBy = (chain: UsdcChain, address: Address): EscrowChain =>
  callsOf(chain, { address, custody: COMMERCE_PAYMENTS.escrow, collector: COMMERCE_PAYMENTS.collector });

async function deploy({ client }: UsdcChain, name: string, args: readonly unknown[]): Promise<Address> {
  const { abi, bytecode } = await hre.artifacts.readArtifact(name);
  const hash = await client.deployContract({
    account: RELAYER,
    chain: null,
    abi: abi as Abi,
    bytecode: bytecode as Hex,
    args,
  });
  const { contractAddress } = await client.waitForTransactionReceipt({ hash });
  if (!contractAddress) throw new Error(`${name} was not deployed.`);
  return contractAddress;
}

interface Place {
  /** The called contract, for which verdicts are signed. */
  readonly address: Address;
  /** The contract that ids and nonces bind. */
  readonly custody: Address;
  /** The payee of the payer's authorization. */
  readonly collector: Address;
}

function callsOf(chain: UsdcChain, { address, custody, collector }: Place) {
  const { client, network } = chain;
  const place = { chainId: network.chainId, escrow: custody };
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
    feeReceiver: FEE_RECIPIENT,
    salt: BigInt(generatePrivateKey()),
    ...fields,
  });
  const signPayment = (payer: PrivateKeyAccount, info: PaymentInfo): Promise<Hex> =>
    signReceiveAuthorization(payer, network, {
      from: info.payer,
      to: collector,
      value: info.maxAmount,
      validAfter: 0n,
      validBefore: BigInt(info.preApprovalExpiry),
      nonce: paymentId(place, info, ZERO),
    });
  const signVerdict = (info: PaymentInfo, release: boolean, record: Hex): Promise<Hex> =>
    ARBITER.signTypedData({
      domain: {
        name: "Agent Payment Trust Escrow",
        version: "1",
        chainId: network.chainId,
        verifyingContract: address,
      },
      types: VERDICT,
      primaryType: "Verdict",
      message: { paymentId: paymentId(place, info), release, record },
    });
  const send = async <F extends Call>(account: Address, functionName: F, args: readonly unknown[]) => {
    // The union of functions is too complex for viem's types.
    const call = { account, chain: null, address, abi: escrowAbi, functionName, args, gas: GAS } as never;
    return client.waitForTransactionReceipt({ hash: (await client.writeContract(call)) as Hex });
  };
  const hold = async (info: PaymentInfo, signature: Hex) =>
    send(RELAYER, "authorize", [info, info.maxAmount, collector, signature]);
  const roles = { arbiter: ARBITER, relayer: RELAYER, feeRecipient: FEE_RECIPIENT };
  return { ...chain, ...roles, address, custody, collector, terms, signPayment, signVerdict, send, hold };
}

/** A new account with this amount of USDC, in atomic units. */
export async function newPayer(chain: Pick<UsdcChain, "fund">, usdc: bigint): Promise<PrivateKeyAccount> {
  const payer = privateKeyToAccount(generatePrivateKey());
  await chain.fund(payer.address, usdc);
  return payer;
}
