import hre from "hardhat";
import {
  type Abi,
  type Address,
  concat,
  encodeFunctionData,
  type Hex,
  numberToHex,
  publicActions,
  sha256,
  toHex,
  walletActions,
  zeroAddress,
} from "viem";
import { logAnchorAbi } from "../../../contracts/log-anchor.ts";
import { devAccount } from "../../../scripts/embedded/dev-accounts.ts";

/** The ways to record a log's root on the chain, each with its gas limit, or null for ways that we do not use. */
export const ANCHORS = {
  "calldata to itself": null,
  "an event": null,
  "an event and the newest one as state": 37_000,
  "the same, the first time": 72_000,
} as const;
export type AnchorGas = Readonly<Record<keyof typeof ANCHORS, number>>;

const BY = devAccount(1).address;
const ORIGIN = sha256(toHex("trust.example/log"));

/** Roots without zero bytes, like nearly all roots. */
const headOf = (size: bigint) => ({ size, root: `0x${"a7".repeat(32)}` as Hex });

/** The gas of one anchor in each way, for the second anchor, and for the first one where that differs. */
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
    const deploy = async (name: string): Promise<Address> => {
      const { abi, bytecode } = await hre.artifacts.readArtifact(name);
      const hash = await client.deployContract({
        account: BY,
        chain: null,
        abi: abi as Abi,
        bytecode: bytecode as Hex,
        args: [],
      });
      return (await client.waitForTransactionReceipt({ hash })).contractAddress ?? zeroAddress;
    };
    const call = ({ size, root }: ReturnType<typeof headOf>) =>
      encodeFunctionData({ abi: logAnchorAbi, functionName: "anchor", args: [ORIGIN, size, root] });
    const [first, second] = [headOf(1_000_000n), headOf(1_000_300n)];
    const [event, state] = [await deploy("EventAnchor"), await deploy("LogAnchor")];
    return {
      "calldata to itself": await send(BY, concat([ORIGIN, numberToHex(second.size, { size: 8 }), second.root])),
      "an event": await send(event, call(second)),
      "the same, the first time": await send(state, call(first)),
      "an event and the newest one as state": await send(state, call(second)),
    };
  } finally {
    await connection.close();
  }
}
