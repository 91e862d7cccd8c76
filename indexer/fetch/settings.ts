import { z } from "zod";
import { type Environment, readEnvironment } from "../../api/platform/config/environment.ts";
import { isHttp, listOf, whole } from "../../api/platform/config/values.ts";
import { START_BLOCK } from "../settings.ts";

const URLS = listOf("HTTP or HTTPS URLs", isHttp);

const ENVIRONMENT = z.object({
  FETCH_RPC_URLS: URLS.optional(),
  BASE_RPC_URL: URLS.optional(),
  FETCH_PER_SECOND: whole(1, 10_000).default(20),
  INDEX_SCOPE: z.literal("selective", { error: "expected selective: only authorized payments are fetched" }).optional(),
  START_BLOCK: START_BLOCK.optional(),
});

export type FetchSettings = Exclude<ReturnType<typeof parseFetchSettings>, { problem: string }>;

/** The configuration of `npm run index:fetch`, or what is wrong with it. */
export function parseFetchSettings(environment: Environment) {
  const { data, problems } = readEnvironment(ENVIRONMENT, environment);
  if (data === undefined) return { problem: problems.join("\n") };
  const { FETCH_RPC_URLS, BASE_RPC_URL, FETCH_PER_SECOND, START_BLOCK } = data;
  const urls: readonly string[] | undefined = FETCH_RPC_URLS ?? BASE_RPC_URL;
  if (urls === undefined)
    return { problem: "FETCH_RPC_URLS is missing: expected the JSON-RPC URLs of Base nodes, or BASE_RPC_URL" };
  return { urls, perSecond: FETCH_PER_SECOND, startBlock: START_BLOCK ?? null };
}
