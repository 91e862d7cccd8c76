import { fetchText } from "../../verifier/src/fetch-text.ts";
import { type Requirement, unmet } from "../../verifier/src/requirement.ts";
import { isObject, type Json, type JsonObject, parseUnsignedJson } from "../../verifier/src/strict-json.ts";
import type { Address } from "./payer.ts";

const TIMEOUT_MS = 3_000;

/** The service's record of a wallet, compared with the shop's requirements. */
export interface WalletLookup {
  /** Requirements that the wallet does not meet; empty for a wallet that may be served. */
  readonly missing: readonly Requirement[];
  /** The service's reasons why the wallet is not verified. */
  readonly reasons: readonly Json[];
  /** The service's instructions for getting tested. */
  readonly howToTest: Json;
}

interface Wanted {
  readonly required: readonly Requirement[];
  /** The network that the wallet pays on, CAIP-2: the record of a test network counts only there. */
  readonly network: string;
}

/**
 * Asks the service about a wallet, within three seconds.
 * @throws Error if there is no response about this wallet
 */
export async function lookUp(service: string, wallet: Address, { required, network }: Wanted): Promise<WalletLookup> {
  const url = `${service}/verify?wallet=${wallet}`;
  const record = parseUnsignedJson(await fetchText(url, { timeoutMs: TIMEOUT_MS }));
  if (!isAbout(record, wallet)) throw new Error(`${url} does not return the record of this wallet`);
  const { reasons = [], how_to_test: howToTest = null, test_network: test, ...facts } = record;
  const counted = test === network ? facts : record;
  return {
    missing: unmet(counted, required, new Date()),
    reasons: Array.isArray(reasons) ? reasons : [],
    howToTest,
  };
}

const isAbout = (record: Json, wallet: Address): record is JsonObject =>
  isObject(record) && typeof record.wallet === "string" && record.wallet.toLowerCase() === wallet.toLowerCase();
