import { counted } from "../counted.ts";
import { InputError, Refusal } from "../refusal.ts";
import { verifyCheckpoint } from "../tlog/policy.ts";
import { consistencyProof, verifyConsistency } from "../tlog/tree.ts";
import { readArguments, TEXT } from "./arguments.ts";
import { openLog, readPolicy, readSource } from "./source.ts";

const USAGE = `Checks that a log only grew between two of its checkpoints.

  agent-payment-trust-verifier log consistency <checkpoint> --old <checkpoint> --tiles <folder | URL> --policy <file | URL>

Checkpoints are files or addresses. Tiles come from the log's address, or from a folder with a copy of its files.

Exit codes: 0 the older log is the beginning of the newer one; 1 it is not; 2 usage error or unreadable input.`;

/** The subcommand `log consistency`. @throws InputError for wrong usage, or for a file that cannot be read */
export async function checkConsistency(args: readonly string[]): Promise<0 | 1> {
  const { source, old, tiles, policy } = readArguments(args, USAGE, { old: TEXT, tiles: TEXT, policy: TEXT });
  if (old === undefined || tiles === undefined) throw new InputError(`Expected --old and --tiles.\n\n${USAGE}`);
  const trusted = await readPolicy(policy, USAGE);
  const notes = [await readSource(old), await readSource(source)] as const;
  try {
    const [older, newer] = await Promise.all(
      notes.map(async (note) => (await verifyCheckpoint(note, trusted)).checkpoint),
    );
    if (older === undefined || newer === undefined) throw new Error("there are two checkpoints");
    if (older.origin !== newer.origin)
      throw new Refusal(
        "consistency_mismatch",
        `the checkpoints are from two logs, ${older.origin} and ${newer.origin}`,
      );
    const isOrdered = older.size <= newer.size;
    const proof = isOrdered ? await consistencyProof(older.size, newer.size, openLog(tiles).tiles) : [];
    verifyConsistency({ oldSize: older.size, oldRoot: older.root, newSize: newer.size, newRoot: newer.root, proof });
    console.log(`consistent: ${older.origin} grew from ${older.size} to ${counted(newer.size, "entry", "entries")}`);
    return 0;
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    console.log(`NOT CONSISTENT (${error.code}): ${error.message}`);
    return 1;
  }
}
