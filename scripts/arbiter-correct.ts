import { parseArgs } from "node:util";
import { verdictPath } from "../api/arbiter/document.ts";
import { recordParts } from "../api/arbiter/index.ts";
import { CORRECTION_DAYS } from "../api/arbiter/products.ts";
import { type Correction, correctVerdict } from "../api/arbiter/reach-verdict.ts";
import { readContracts } from "../api/escrow/contracts-chain.ts";
import { ESCROW_NETWORK } from "../api/escrow/payment.ts";
import { createChain } from "../api/platform/chain/chain.ts";
import type { Config } from "../api/platform/config/config.ts";
import { connect } from "../api/platform/db/connection.ts";
import { didWeb } from "../api/platform/signing/did.ts";
import { createSigner } from "../api/platform/signing/document.ts";
import { signingKey } from "../api/platform/signing/keys.ts";
import { openScores } from "../api/score/index.ts";
import { readConfig } from "./embedded/environment.ts";
import { SettingError } from "./embedded/settings.ts";

const USAGE = `Usage: npm run arbiter:correct -- <id of the verdict> --reason "what the arbiter got wrong"

Reruns the verdict's claim and records a new verdict that supersedes it. The reason is public. Configured like the API:
by DATABASE_URL and its other variables, or by the DATA_DIR and PORT of a running "npm start".`;
const MAX_REASON = 500;

interface Order {
  readonly id: string;
  readonly reason: string;
}

/** @throws SettingError */
function readOrder(args: readonly string[]): Order {
  let parsed: { values: { reason?: string }; positionals: string[] };
  try {
    parsed = parseArgs({ args: [...args], options: { reason: { type: "string" } }, allowPositionals: true });
  } catch (error) {
    throw new SettingError(`${(error as Error).message}\n\n${USAGE}`);
  }
  const { values, positionals } = parsed;
  const [id = ""] = positionals;
  const reason = values.reason?.trim() ?? "";
  if (positionals.length !== 1 || !/^[0-9a-f]{32}$/.test(id) || reason === "" || reason.length > MAX_REASON)
    throw new SettingError(
      `Expected an ID of 32 hex digits and a reason of 1 to ${MAX_REASON} characters.\n\n${USAGE}`,
    );
  return { id, reason };
}

async function correct(config: Config, { id, reason }: Order): Promise<Correction> {
  const pool = connect(config.databaseUrl, 2);
  const now = () => new Date();
  const log = { warn: (facts: object, message: string) => console.warn(message, facts) };
  try {
    const { rpcUrls, logBlockRange, rpcBatch, escrowAddresses } = config;
    const { client } = createChain(ESCROW_NETWORK, { rpcUrl: rpcUrls[ESCROW_NETWORK], logBlockRange, rpcBatch });
    const contracts = await readContracts(client, ESCROW_NETWORK, escrowAddresses);
    const signer = createSigner(await signingKey(config.signingKey), didWeb(config.baseUrl));
    return await correctVerdict(
      recordParts({ pool, meter: null, now, keys: { signer } }, config, {
        tiers: openScores({ pool, now, log }, config, { contracts }).tiers,
      }),
      id,
      reason,
    );
  } finally {
    await pool.end();
  }
}

function tell(correction: Correction, { id }: Order, { baseUrl }: Config): void {
  if ("verdict" in correction) {
    const { verdict } = correction;
    console.log(`${verdict.outcome} ${verdict.id}\n${baseUrl}${verdictPath(verdict.id)}`);
    return;
  }
  throw new SettingError(whyNot(correction, id));
}

function whyNot(correction: Extract<Correction, { refused: string }>, id: string): string {
  switch (correction.refused) {
    case "unknown":
      return `There is no verdict ${id}.`;
    case "corrected":
      return `Verdict ${id} has already been corrected by ${correction.by}.`;
    case "too_late":
      return `Verdict ${id} was issued at ${correction.issuedAt.toISOString()}: corrections must be made within ${CORRECTION_DAYS} days.`;
    default:
      return correction satisfies never;
  }
}

/** Returns the error in one line. A connection refused on every address has only a code, no message. */
const causeOf = (error: unknown): string =>
  String((error as Error).message || (error as NodeJS.ErrnoException).code).split("\n")[0] ?? "";

try {
  const order = readOrder(process.argv.slice(2));
  const config = await readConfig();
  tell(await correct(config, order), order, config);
} catch (error) {
  console.error(error instanceof SettingError ? error.message : `The correction failed: ${causeOf(error)}`);
  process.exitCode = 1;
}
