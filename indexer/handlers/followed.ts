/** The escrows whose earlier holds are not in the rows, each with its first block that is. */
const late = new Map(
  (process.env.ESCROWS_FROM ?? "")
    .split(",")
    .filter(Boolean)
    .map((pair) => pair.split("=") as [string, string])
    .map(([address, fromBlock]) => [address, BigInt(fromBlock)]),
);

/** Whether what an escrow did in this block belongs in the rows. */
export const isFollowed = (escrow: string, block: bigint): boolean => block >= (late.get(escrow) ?? 0n);
