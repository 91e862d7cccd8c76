import { InputError, quote, Refusal } from "../refusal.ts";
import { isObject, parseUnsignedJson } from "../strict-json.ts";
import { checkLogged, type LoggedReport } from "../tlog/check-logged.ts";
import { verifyCheckpoint, witnessedAt } from "../tlog/policy.ts";
import { consistencyProof, verifyConsistency } from "../tlog/tree.ts";
import { counted, FLAG, openLog, readArguments, readPolicy, readSource, TEXT } from "./arguments.ts";
import { monitorLog } from "./log-monitor.ts";
import { checkWallet } from "./log-wallet.ts";
import { readTrust, TRUST_OPTIONS } from "./trust.ts";

const USAGE = `Checks that a record is in the service's public log, offline.

  agent-payment-trust-verifier log <file | URL | -> --proof <file | URL> --policy <file | URL>
    [--issuer <origin | did:web:…>] [--jwks <file | URL>] [--json]
  agent-payment-trust-verifier log consistency <checkpoint> --old <checkpoint> --tiles <folder | URL> --policy <file | URL>
  agent-payment-trust-verifier log monitor <URL of the log> --policy <file | URL> [--state <file>] [--once] [--every <seconds>]
  agent-payment-trust-verifier log wallet <0x…> --state <file> --wallets <file> [--record <file | URL>]

The record is the JSON of a certificate, a verdict or an evaluation; its proof is at the same address with .tlog-proof. The
policy (C2SP tlog-policy) names the log, the witnesses, and how many of them must have cosigned. --issuer names the expected signer
of the entry; its keys are fetched from there unless --jwks pins them.

Exit codes: 0 it is in the log; 1 its inclusion is not proven; 2 usage error or unreadable input.`;

/** The subcommand `log`. @throws InputError for wrong usage, or for a source that cannot be read */
export async function checkLog(args: readonly string[]): Promise<0 | 1> {
  if (args[0] === "consistency") return checkConsistency(args.slice(1));
  if (args[0] === "monitor") return monitorLog(args.slice(1));
  if (args[0] === "wallet") return checkWallet(args.slice(1));
  const { proof, policy, json, ...given } = readArguments(args, USAGE, {
    ...TRUST_OPTIONS,
    proof: TEXT,
    policy: TEXT,
    json: FLAG,
  });
  if (proof === undefined) throw new InputError(`Where is the record's proof? Add --proof.\n\n${USAGE}`);
  const trusted = await readPolicy(policy, USAGE);
  const record = await readSource(given.source);
  const { expected } = await readTrust(given, USAGE);
  const report = await checkLogged({ proof: await readSource(proof), policy: trusted, expected, subject: { record } });
  console.log(json ? JSON.stringify(report, null, 2) : render(report, record));
  return report.valid ? 0 : 1;
}

/** Reports a later change that the record states; the proof of the original entry is valid all the same. */
function since(record: Uint8Array): readonly string[] {
  const document = parseUnsignedJson(record);
  const marks = ["reversed", "corrected", "expired"].filter((name) => isObject(document) && document[name] === true);
  return marks.length === 0 ? [] : [`  since      the record is marked ${marks.join(" and ")}, so it no longer counts`];
}

/** The log chooses the ids, so they are untrusted. */
const plain = (id: string): string => quote(id).replace(/^"|"$/g, "");

function render(report: LoggedReport, record: Uint8Array): string {
  if (!report.valid) return `NOT VALID (${report.code}): ${report.reason}`;
  const { log, index, size, type, id, issuer, claims, witnesses } = report;
  const names = witnesses.map((one) => `${one.name} on ${witnessedAt(one)}`);
  return [
    `valid: the ${type} ${plain(id)} is entry ${index} of the log ${log}`,
    `  about      ${claims.about}`,
    ...(claims.summary === "" ? [] : [`  result     ${claims.summary}`]),
    ...since(record),
    `  signed     by ${issuer}`,
    `  tree       ${counted(size, "entry", "entries")}`,
    `  witnessed  ${names.join(", ") || "none; the policy requires no witness"}`,
  ].join("\n");
}

const CONSISTENCY_USAGE = `Checks that a log only grew between two of its checkpoints.

  agent-payment-trust-verifier log consistency <checkpoint> --old <checkpoint> --tiles <folder | URL> --policy <file | URL>

Checkpoints are files or addresses. Tiles come from the log's address, or from a folder with a copy of its files.

Exit codes: 0 the older log is the beginning of the newer one; 1 it is not; 2 usage error or unreadable input.`;

/** The subcommand `log consistency`. @throws InputError for wrong usage, or for a file that cannot be read */
async function checkConsistency(args: readonly string[]): Promise<0 | 1> {
  const { source, old, tiles, policy } = readArguments(args, CONSISTENCY_USAGE, {
    old: TEXT,
    tiles: TEXT,
    policy: TEXT,
  });
  if (old === undefined || tiles === undefined)
    throw new InputError(`Expected --old and --tiles.\n\n${CONSISTENCY_USAGE}`);
  const trusted = await readPolicy(policy, CONSISTENCY_USAGE);
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
