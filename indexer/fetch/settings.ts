import { z } from "zod";
import { type Environment, readEnvironment } from "../../api/platform/config/environment.ts";
import { isHttp, listOf, whole } from "../../api/platform/config/values.ts";
import { MAIN_NETWORK, NETWORKS, type RpcVariable } from "../../api/platform/networks.ts";
import { START_BLOCK } from "../settings.ts";

const { name, rpcVariable } = NETWORKS[MAIN_NETWORK];
const URLS = listOf("HTTP or HTTPS URLs", isHttp).optional();
const RPC_URL = { [rpcVariable]: URLS } as Record<RpcVariable, typeof URLS>;

const ENVIRONMENT = z.object({
  FETCH_RPC_URLS: URLS,
  ...RPC_URL,
  FETCH_PER_SECOND: whole(1, 10_000).default(20),
  INDEX_SCOPE: z.literal("selective", { error: "expected selective: only authorized payments are fetched" }).optional(),
  START_BLOCK: START_BLOCK.optional(),
});

export type FetchSettings = Exclude<ReturnType<typeof parseFetchSettings>, { problem: string }>;

/** Parses the configuration of `npm run index:fetch`, or returns the problem. */
export function parseFetchSettings(environment: Environment) {
  const { data, problems } = readEnvironment(ENVIRONMENT, environment);
  if (data === undefined) return { problem: problems.join("\n") };
  const { FETCH_RPC_URLS, FETCH_PER_SECOND, START_BLOCK } = data;
  const urls: readonly string[] | undefined = FETCH_RPC_URLS ?? data[rpcVariable];
  if (urls === undefined)
    return { problem: `FETCH_RPC_URLS is missing: expected the JSON-RPC URLs of ${name} nodes, or ${rpcVariable}` };
  return { urls, perSecond: FETCH_PER_SECOND, startBlock: START_BLOCK ?? null };
}
