import { z } from "zod";
import { isHttp, listOf, whole } from "../../api/platform/config/values.ts";
import type { Scope } from "../ledger.ts";
import { type Environment, parse, SCOPE, START_BLOCK } from "../settings.ts";

const URLS = listOf("HTTP or HTTPS URLs", isHttp);

const ENVIRONMENT = z.object({
  FETCH_RPC_URLS: URLS.optional(),
  BASE_RPC_URL: URLS.optional(),
  FETCH_PER_SECOND: whole(1, 10_000).default(20),
  INDEX_SCOPE: SCOPE.optional(),
  START_BLOCK: START_BLOCK.optional(),
});

/** The configuration of `npm run index:fetch`. */
export interface FetchSettings {
  readonly urls: readonly string[];
  /** Requests a second to each node. */
  readonly perSecond: number;
  /** Null: that of the folder's files, else `selective`. */
  readonly scope: Scope | null;
  /** Null: 90 days before the newest final block. */
  readonly startBlock: number | null;
}

export function parseFetchSettings(environment: Environment): FetchSettings | { readonly problem: string } {
  const parsed = parse(ENVIRONMENT, environment);
  if ("problem" in parsed) return parsed;
  const { FETCH_RPC_URLS, BASE_RPC_URL, FETCH_PER_SECOND, INDEX_SCOPE, START_BLOCK } = parsed.env;
  const urls = FETCH_RPC_URLS ?? BASE_RPC_URL;
  if (urls === undefined)
    return { problem: "FETCH_RPC_URLS is missing: expected the JSON-RPC URLs of Base nodes, or BASE_RPC_URL" };
  return { urls, perSecond: FETCH_PER_SECOND, scope: INDEX_SCOPE ?? null, startBlock: START_BLOCK ?? null };
}
