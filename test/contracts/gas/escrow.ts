import { type Address, encodeFunctionData, type Hex, keccak256, parseAbi, toHex } from "viem";
import { MULTICALL3 } from "../../../api/platform/chain/read-at-block.ts";
import { NETWORKS } from "../../../api/platform/networks.ts";
import { escrowAbi } from "../../../contracts/abi.ts";
import { putBehindProxy } from "../../support/chain/contracts.ts";
import { connectUsdc } from "../../support/chain/usdc-chain.ts";
import { deployEscrow, type EscrowChain, newPayer, type PaymentInfo } from "../escrow-chain.ts";

/** Circle's token contract alone, as on the local chains, or behind Circle's proxy, as on Base. */
export type Token = "token" | "proxied";
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

const HUNDRED_USD = 100_000_000n;
const RECORD: Hex = `0x${"ab".repeat(32)}`;
const TIMEOUT_SECONDS = 1_800;
const AGGREGATE = parseAbi([
  "struct Call { address target; bytes callData; }",
  "function aggregate(Call[] calls) payable returns (uint256 blockNumber, bytes[] returnData)",
]);

/**
 * Measures each use in its own transaction with cold storage, 100 USDC, and Circle's own code, on an in-process chain.
 */
export async function measureGas(token: Token): Promise<Gas> {
  const environment = { title: "", hardhatNetwork: "simulatedBase", skipped: null } as const;
  const chain = await connectUsdc({ ...environment, network: NETWORKS["eip155:8453"] });
  try {
    if (token === "proxied") await putBehindProxy(chain);
    return await measureOn(await deployEscrow(chain));
  } finally {
    await chain.connection.close();
  }
}

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

/** A held payment of 100 USDC. The payer keeps `left`, and the merchant already has `merchantHas` (in atomic units). */
async function sell(escrow: EscrowChain, { left = 1n, merchantHas = 1n } = {}): Promise<Sale> {
  const payer = await newPayer(escrow, HUNDRED_USD + left);
  // The salt is fixed, because zero bytes in it would make it cheaper.
  const salt = BigInt(keccak256(toHex("salt")));
  const receiver = keccak256(payer.address).slice(0, 42) as Address;
  const info = await escrow.terms({ payer: payer.address, receiver, maxAmount: HUNDRED_USD, salt });
  if (merchantHas > 0n) await escrow.fund(info.receiver, merchantHas);
  return { info, gas: gasOf(await escrow.hold(info, await escrow.signPayment(payer, info))) };
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
