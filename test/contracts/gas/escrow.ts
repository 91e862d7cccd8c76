import { type Address, encodeFunctionData, type Hex, parseAbi } from "viem";
import { MULTICALL3 } from "../../../api/platform/chain/read-at-block.ts";
import { escrowAbi } from "../../../contracts/abi.ts";
import { onLocalBase } from "../../support/chain/usdc-chain.ts";
import { deployEscrow, type EscrowChain, type PaymentInfo, signSale } from "../escrow-chain.ts";

export type Gas = Readonly<Record<keyof typeof USES, number>>;

/**
 * The measured uses with their gas limits, or null without a limit. Unless the name states otherwise, the payer, the
 * merchant, and the escrow hold other USDC, and the fee recipient is already owed some.
 */
export const USES = {
  hold: 121_500,
  "release by the arbiter": 67_500,
  "relayed release": 73_000,
  "refund by the arbiter": 61_900,
  "timeout refund by anyone": 61_900,
  "withdraw the fees": null,
  "ten relayed releases, Multicall3": null,
  "hold of the payer's whole balance": null,
  "release to a merchant without USDC": null,
} as const;

const RECORD: Hex = `0x${"ab".repeat(32)}`;
const TIMEOUT_SECONDS = 1_800;
const AGGREGATE = parseAbi([
  "struct Call { address target; bytes callData; }",
  "function aggregate(Call[] calls) payable returns (uint256 blockNumber, bytes[] returnData)",
]);

/** Measures each use in its own transaction with cold storage and 100 USDC. */
export const measureGas = (): Promise<Gas> => onLocalBase(async (chain) => measureOn(await deployEscrow(chain)));

async function measureOn(escrow: EscrowChain): Promise<Gas> {
  const arbiter = escrow.arbiter.address;
  const decide = async (use: "release" | "refund", by: Address, { info }: Sale) => {
    const verdict = by === arbiter ? "0x" : await escrow.signVerdict(info, use === "release", RECORD);
    return gasOf(await escrow.send(by, use, [info, RECORD, verdict]));
  };
  // After two earlier sales, the token and the escrow have records of the escrow and of the fee recipient.
  await decide("release", arbiter, await sell(escrow));
  await sell(escrow);
  const sale = await sell(escrow);
  const release = await decide("release", arbiter, sale);
  const relayed = await decide("release", escrow.relayer, await sell(escrow));
  const refund = await decide("refund", arbiter, await sell(escrow));
  const ten = await releaseTen(escrow);
  const whole = await sell(escrow, { left: 0n });
  const first = await decide("release", arbiter, await sell(escrow, { merchantHas: 0n }));
  const late = await sell(escrow);
  await escrow.client.increaseTime({ seconds: TIMEOUT_SECONDS });
  const noVerdict: Hex = "0x";
  const timeout = gasOf(await escrow.send(escrow.relayer, "refund", [late.info, `0x${"00".repeat(32)}`, noVerdict]));
  await escrow.fund(escrow.feeRecipient, 1n);
  return {
    hold: sale.gas,
    "release by the arbiter": release,
    "relayed release": relayed,
    "refund by the arbiter": refund,
    "timeout refund by anyone": timeout,
    "withdraw the fees": gasOf(await escrow.send(escrow.relayer, "withdraw", [escrow.feeRecipient])),
    "ten relayed releases, Multicall3": ten,
    "hold of the payer's whole balance": whole.gas,
    "release to a merchant without USDC": first,
  };
}

interface Sale {
  readonly info: PaymentInfo;
  readonly gas: number;
}

const gasOf = ({ gasUsed }: { readonly gasUsed: bigint }): number => Number(gasUsed);

/** A held payment. */
async function sell(escrow: EscrowChain, has: Parameters<typeof signSale>[1] = {}): Promise<Sale> {
  const { info, signature } = await signSale(escrow, has);
  return { info, gas: gasOf(await escrow.hold(info, signature)) };
}

async function releaseTen(escrow: EscrowChain): Promise<number> {
  const calls: { target: Address; callData: Hex }[] = [];
  for (let n = 0; n < 10; n++) {
    const { info } = await sell(escrow);
    const args = [info, RECORD, await escrow.signVerdict(info, true, RECORD)] as const;
    const callData = encodeFunctionData({ abi: escrowAbi, functionName: "release", args });
    calls.push({ target: escrow.address, callData });
  }
  const data = encodeFunctionData({ abi: AGGREGATE, functionName: "aggregate", args: [calls] });
  const call = { account: escrow.relayer, chain: null, to: MULTICALL3, data, gas: 2_000_000n } as const;
  const hash = await escrow.client.sendTransaction(call);
  return gasOf(await escrow.client.waitForTransactionReceipt({ hash }));
}
