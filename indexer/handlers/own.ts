import { isBetweenOthers, type Movement } from "../ledger.ts";

/** The service's own addresses, each with the first block from which it is left out. */
const own = new Map(
  (process.env.OWN_ADDRESSES ?? "")
    .split(",")
    .filter(Boolean)
    .map((pair) => pair.split("=") as [string, string])
    .map(([address, fromBlock]) => [address, BigInt(fromBlock)]),
);

/** Whether money that moves or is held in this block counts: `isBetweenOthers` in ledger.ts. */
export const counts = (movement: Movement, block: bigint): boolean =>
  isBetweenOthers(movement, (address) => {
    const fromBlock = own.get(address);
    return fromBlock !== undefined && fromBlock <= block;
  });
