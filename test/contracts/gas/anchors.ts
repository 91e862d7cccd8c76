import hre from "hardhat";
import { type Address, encodeFunctionData, type Hex, publicActions, sha256, toHex, walletActions } from "viem";
import { logAnchorAbi } from "../../../contracts/log-anchor.ts";
import { devAccount } from "../../../scripts/embedded/dev-accounts.ts";
import { deployContract } from "../../support/chain/contracts.ts";

/** The gas limit of an anchor of the log. */
export const ANCHORS = { "the first anchor": 72_000, "a later one": 37_000 } as const;
export type AnchorGas = Readonly<Record<keyof typeof ANCHORS, number>>;

const BY = devAccount(1).address;
const ORIGIN = sha256(toHex("trust.example/log"));

/** Roots without zero bytes, like nearly all roots. */
const headOf = (size: bigint) => ({ size, root: `0x${"a7".repeat(32)}` as Hex });

/** Measures the first anchor of a log and a later one. */
export async function measureAnchors(): Promise<AnchorGas> {
  const connection = await hre.network.create("simulatedBase");
  try {
    const client = (await connection.viem.getTestClient()).extend(publicActions).extend(walletActions);
    const send = async (to: Address, data: Hex): Promise<number> => {
      const hash = await client.sendTransaction({ account: BY, chain: null, to, data, gas: 200_000n });
      const { gasUsed, status } = await client.waitForTransactionReceipt({ hash });
      if (status !== "success") throw new Error("The anchor was refused.");
      return Number(gasUsed);
    };
    const call = ({ size, root }: ReturnType<typeof headOf>) =>
      encodeFunctionData({ abi: logAnchorAbi, functionName: "anchor", args: [ORIGIN, size, root] });
    const [first, second] = [headOf(1_000_000n), headOf(1_000_300n)];
    const { address } = await deployContract(client, BY, ["LogAnchor"]);
    return { "the first anchor": await send(address, call(first)), "a later one": await send(address, call(second)) };
  } finally {
    await connection.close();
  }
}
