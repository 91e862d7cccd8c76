import { type Address, encodeFunctionData, type Hex, keccak256, toHex } from "viem";
import { privateKeyToAccount } from "viem/accounts";
import { type Carriable, outcomeBatch } from "../../../api/escrow/calldata.ts";
import { escrowAbi } from "../../../contracts/abi.ts";
import { onLocalBase } from "../../support/chain/usdc-chain.ts";
import { deployEscrow, type EscrowChain, NO_RECORD, type PaymentInfo } from "../escrow-chain.ts";

/** The number of outcomes per transaction. */
export const OUTCOME_SIZES = [2, 5, 10, 20, 50] as const;
export type OutcomeSize = (typeof OUTCOME_SIZES)[number];
export const OUTCOME_KINDS = ["release", "refund", "refund by the clock"] as const;
export type OutcomeKind = (typeof OUTCOME_KINDS)[number];
/** The gas limit per outcome in the largest batch. */
export const OUTCOME_CEILING = 35_000;

export interface OutcomeGas {
  /** Gas per outcome, by the number of outcomes per transaction. */
  readonly batch: Readonly<Record<OutcomeKind, Readonly<Record<OutcomeSize, number>>>>;
  /** One outcome by the arbiter's own key. */
  readonly alone: number;
  /**
   * The most expensive outcome, in a separate transaction: USDC refuses the merchant, and the escrow has no debts yet.
   */
  readonly dearest: number;
}

/** The smallest amount that the contract holds. */
const DUST = 10_000n;
const RECORD: Hex = `0x${"ab".repeat(32)}`;
const TIMEOUT_SECONDS = 1_800;

/** Measures holds of 0.01 USDC by different payers for different merchants, who all keep some USDC. */
export const measureOutcomes = (): Promise<OutcomeGas> =>
  onLocalBase(async (chain) => {
    const escrow = await deployEscrow(chain);
    const sales = createSales(escrow);
    const refused = await sales.sell();
    await escrow.blacklist(refused.receiver);
    const dearest = await gasOf(escrow, await callFor(escrow, "release", refused));
    const alone = await escrow.send(escrow.arbiter.address, "release", [await sales.sell(), RECORD, "0x"]);
    const batch: Record<string, Record<number, number>> = {};
    for (const kind of OUTCOME_KINDS) {
      batch[kind] = {};
      for (const size of OUTCOME_SIZES) batch[kind][size] = await measure(escrow, sales, { kind, size });
    }
    return { batch, alone: Number(alone.gasUsed), dearest } as unknown as OutcomeGas;
  });

type Sales = ReturnType<typeof createSales>;

/** Sales with the same keys and salts in every run. */
function createSales(escrow: EscrowChain) {
  let count = 0;
  return {
    async sell(): Promise<PaymentInfo> {
      const payer = privateKeyToAccount(keccak256(toHex(`dust ${count}`)));
      const receiver = keccak256(payer.address).slice(0, 42) as Address;
      const salt = BigInt(keccak256(toHex(`salt ${count++}`)));
      await escrow.fund(payer.address, DUST + 1n);
      await escrow.fund(receiver, 1n);
      const info = await escrow.terms({ payer: payer.address, receiver, maxAmount: DUST, salt });
      await escrow.hold(info, await escrow.signPayment(payer, info));
      return info;
    },
  };
}

async function measure(
  escrow: EscrowChain,
  sales: Sales,
  { kind, size }: { readonly kind: OutcomeKind; readonly size: OutcomeSize },
): Promise<number> {
  const infos: PaymentInfo[] = [];
  while (infos.length < size) infos.push(await sales.sell());
  if (kind === "refund by the clock") await escrow.client.increaseTime({ seconds: TIMEOUT_SECONDS });
  const calls = await Promise.all(infos.map((info) => callFor(escrow, kind, info)));
  return Math.round((await gasOf(escrow, outcomeBatch(calls), size)) / size);
}

async function callFor(escrow: EscrowChain, kind: OutcomeKind, info: PaymentInfo): Promise<Carriable> {
  const functionName = kind === "release" ? "release" : "refund";
  const args =
    kind === "refund by the clock"
      ? ([info, NO_RECORD, "0x"] as const)
      : ([info, RECORD, await escrow.signVerdict(info, kind === "release", RECORD)] as const);
  return { to: escrow.address, data: encodeFunctionData({ abi: escrowAbi, functionName, args }), gas: 120_000n };
}

async function gasOf({ client, arbiter }: EscrowChain, call: Carriable, ends = 1): Promise<number> {
  const hash = await client.sendTransaction({ account: arbiter.address, chain: null, ...call });
  const { gasUsed, logs, status } = await client.waitForTransactionReceipt({ hash });
  // Each outcome emits one event of the contract and one of the token.
  if (status !== "success" || logs.length !== 2 * ends) throw new Error(`${ends} outcomes left ${logs.length} events.`);
  return Number(gasUsed);
}
