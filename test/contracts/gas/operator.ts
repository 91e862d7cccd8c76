import { type Address, type Hex, parseAbi } from "viem";
import { COMMERCE_PAYMENTS } from "../../../contracts/commerce-payments.ts";
import { devAccount } from "../../../scripts/embedded/dev-accounts.ts";
import { COMMERCE_ENVIRONMENTS, connectCommerce, onLocalBase } from "../../support/chain/usdc-chain.ts";
import { deployOperator, type EscrowChain, HUNDRED_USD, operatedBy, signSale } from "../escrow-chain.ts";

/**
 * The gas limit of the operator's overhead over an account that calls base/commerce-payments directly. Over our
 * stand-in, only this difference is meaningful.
 */
export const OVERHEADS = { hold: 31_800, "release by the arbiter": 7_100, "refund by the arbiter": 7_150 } as const;
export type OperatorUse = keyof typeof OVERHEADS;
export const OPERATOR_USES = Object.keys(OVERHEADS) as readonly OperatorUse[];

export interface OperatorGas {
  /** Gas through the operator. */
  readonly operator: Readonly<Record<OperatorUse, number>>;
  /** Gas of an account that is itself the payment's operator. */
  readonly direct: Readonly<Record<OperatorUse, number>>;
  readonly relayed: Readonly<Record<"release" | "refund" | "timeout refund by anyone", number>>;
}

const TIMEOUT_SECONDS = 1_800;
const RECORD: Hex = `0x${"ab".repeat(32)}`;
const NO_VERDICT: Hex = "0x";
const DIRECT = parseAbi([
  "struct PaymentInfo { address operator; address payer; address receiver; address token; uint120 maxAmount; uint48 preApprovalExpiry; uint48 authorizationExpiry; uint48 refundExpiry; uint16 minFeeBps; uint16 maxFeeBps; address feeReceiver; uint256 salt; }",
  "function authorize(PaymentInfo info, uint256 amount, address collector, bytes data)",
  "function capture(PaymentInfo info, uint256 amount, uint16 feeBps, address feeReceiver)",
  "function void(PaymentInfo info)",
]);

/** Measures with cold storage and 100 USDC, on the real base/commerce-payments if CANONICAL_CODE is set. */
export async function measureOperator(): Promise<OperatorGas> {
  const isLocal = ({ skipped, hardhatNetwork }: (typeof COMMERCE_ENVIRONMENTS)[number]) =>
    skipped === null && hardhatNetwork === "simulatedBase";
  const environment = COMMERCE_ENVIRONMENTS.findLast(isLocal);
  if (environment === undefined) throw new Error("There is no local chain to measure on.");
  return onLocalBase(async (chain) => {
    const operator = await deployOperator(chain);
    const direct = await measureDirect(operatedBy(chain, devAccount(7).address));
    return { ...(await measureThrough(operator)), direct };
  }, connectCommerce(environment));
}

async function measureThrough(operator: EscrowChain): Promise<Pick<OperatorGas, "operator" | "relayed">> {
  const arbiter = operator.arbiter.address;
  const hold = async () => {
    const { info, signature } = await signSale(operator);
    return { info, gas: gasOf(await operator.hold(info, signature)) };
  };
  const decide = async (use: "release" | "refund", by: Address) => {
    const { info } = await hold();
    const verdict = by === arbiter ? NO_VERDICT : await operator.signVerdict(info, use === "release", RECORD);
    return gasOf(await operator.send(by, use, [info, RECORD, verdict]));
  };
  // Two earlier sales, as with the escrow.
  await decide("release", arbiter);
  await hold();
  const { gas } = await hold();
  const release = await decide("release", arbiter);
  const refund = await decide("refund", arbiter);
  const relayed = {
    release: await decide("release", operator.relayer),
    refund: await decide("refund", operator.relayer),
  };
  const late = await hold();
  await operator.client.increaseTime({ seconds: TIMEOUT_SECONDS });
  const none: Hex = `0x${"00".repeat(32)}`;
  const timeout = gasOf(await operator.send(operator.relayer, "refund", [late.info, none, NO_VERDICT]));
  return {
    operator: { hold: gas, "release by the arbiter": release, "refund by the arbiter": refund },
    relayed: { ...relayed, "timeout refund by anyone": timeout },
  };
}

async function measureDirect(account: EscrowChain): Promise<OperatorGas["direct"]> {
  const { client, address, collector, feeRecipient } = account;
  const send = async (functionName: "authorize" | "capture" | "void", args: readonly unknown[]) => {
    const call = { account: address, chain: null, address: COMMERCE_PAYMENTS.escrow, abi: DIRECT, functionName, args };
    const hash = await client.writeContract({ ...call, gas: 400_000n } as never);
    return gasOf(await client.waitForTransactionReceipt({ hash }));
  };
  const hold = async () => {
    const { info, signature } = await signSale(account);
    return { info, gas: await send("authorize", [info, info.maxAmount, collector, signature]) };
  };
  const capture = async () => send("capture", [(await hold()).info, HUNDRED_USD, 100, feeRecipient]);
  await capture();
  await hold();
  const { gas } = await hold();
  return {
    hold: gas,
    "release by the arbiter": await capture(),
    "refund by the arbiter": await send("void", [(await hold()).info]),
  };
}

const gasOf = ({ gasUsed }: { readonly gasUsed: bigint }): number => Number(gasUsed);
