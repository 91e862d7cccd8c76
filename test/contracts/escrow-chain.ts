import { type Address, type ContractFunctionArgs, type Hex, keccak256, toHex } from "viem";
import { generatePrivateKey, type PrivateKeyAccount, privateKeyToAccount } from "viem/accounts";
import { verdictTypedData } from "../../api/escrow/calldata.ts";
import { escrowAbi } from "../../contracts/abi.ts";
import { COMMERCE_PAYMENTS } from "../../contracts/commerce-payments.ts";
import { payerAgnosticNonce, paymentId } from "../../packages/escrow/src/payment-info.ts";
import { devAccount } from "../../scripts/embedded/dev-accounts.ts";
import { deployContract } from "../support/chain/contracts.ts";
import type { UsdcChain } from "../support/chain/usdc-chain.ts";
import { signReceiveAuthorization } from "../support/payments/signing.ts";

/** The terms of a payment, as in the contract's ABI. */
export type PaymentInfo = ContractFunctionArgs<typeof escrowAbi, "view", "getHash">[0];
/** An escrow or an operator, which have the same calls. */
export type EscrowChain = ReturnType<typeof callsOf>;
type Call = "authorize" | "release" | "refund" | "withdraw";

/** Enough for the operator's most expensive hold, which also deploys a smart wallet. */
const GAS = 2_000_000n;
export const NO_RECORD: Hex = `0x${"00".repeat(32)}`;

const ARBITER = devAccount(4);
const RELAYER = devAccount(5).address;
const FEE_RECIPIENT = devAccount(6).address;

/**
 * Deploys an escrow on a chain with the real USDC. Its arbiter is `arbiter`, and `relayer` sends calls that anybody may
 * send.
 */
export async function deployEscrow(chain: UsdcChain) {
  const args = [chain.network.usdc.address, ARBITER.address, FEE_RECIPIENT];
  const { address } = await deployContract(chain.client, RELAYER, ["Escrow", ...args]);
  return callsOf(chain, { address, custody: address, collector: address });
}

/** Deploys an operator in the same way, over base/commerce-payments, which the chain must have. */
export async function deployOperator(chain: UsdcChain) {
  const { escrow: custody, collector, feeIsAmount } = COMMERCE_PAYMENTS;
  const args = [custody, collector, chain.network.usdc.address, ARBITER.address, FEE_RECIPIENT, feeIsAmount];
  const { address } = await deployContract(chain.client, RELAYER, ["ArbiterOperator", ...args]);
  return callsOf(chain, { address, custody, collector });
}

/** The calls of base/commerce-payments for an account that is itself the operator. */
export const operatedBy = (chain: UsdcChain, address: Address): EscrowChain =>
  callsOf(chain, { address, custody: COMMERCE_PAYMENTS.escrow, collector: COMMERCE_PAYMENTS.collector });

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
      nonce: payerAgnosticNonce(place, info),
    });
  const signVerdict = (info: PaymentInfo, release: boolean, record: Hex): Promise<Hex> =>
    ARBITER.signTypedData(
      verdictTypedData(
        {
          network: network.id,
          contract: address,
          payment: paymentId(place, info),
          decision: release ? "release" : "refund",
        },
        record,
      ),
    );
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

export const HUNDRED_USD = 100_000_000n;

/**
 * Signs a payment of 100 USDC. The payer has `left` more, and the merchant has `merchantHas` (in atomic units). The salt
 * is fixed, because zero bytes in it would make it cheaper.
 */
export async function signSale(chain: EscrowChain, { left = 1n, merchantHas = 1n } = {}) {
  const payer = await newPayer(chain, HUNDRED_USD + left);
  const receiver = keccak256(payer.address).slice(0, 42) as Address;
  if (merchantHas > 0n) await chain.fund(receiver, merchantHas);
  const salt = BigInt(keccak256(toHex("salt")));
  const info = await chain.terms({ payer: payer.address, receiver, maxAmount: HUNDRED_USD, salt });
  return { info, signature: await chain.signPayment(payer, info) };
}

/** A new account with this amount of USDC, in atomic units. */
export async function newPayer(chain: Pick<UsdcChain, "fund">, usdc: bigint): Promise<PrivateKeyAccount> {
  const payer = privateKeyToAccount(generatePrivateKey());
  await chain.fund(payer.address, usdc);
  return payer;
}
