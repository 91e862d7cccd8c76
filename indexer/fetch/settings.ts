import { z } from "zod";
import { MAIN_NETWORK, NETWORKS } from "../../api/platform/networks.ts";

/** The configuration of `npm run index:fetch`. */
export interface FetchSettings {
  /** One or several nodes of Base, tried in turn. */
  readonly urls: readonly string[];
  /** Requests a second to each of them. */
  readonly perSecond: number;
  /** Null: that of the folder's files, else `selective`. */
  readonly scope: "full" | "selective" | null;
  /** Null: 90 days before the newest final block. */
  readonly startBlock: number | null;
}

const BASE = NETWORKS[MAIN_NETWORK];
const isHttp = (text: string) => URL.canParse(text) && /^https?:$/.test(new URL(text).protocol);
const listed = (text: string) => text.split(",").map((item) => item.trim());
const urls = z
  .string()
  .refine((text) => listed(text).every(isHttp), "expected HTTP or HTTPS URLs, separated by commas")
  .transform(listed);
const whole = (low: number, high: number) => {
  const error = `expected a whole number from ${low} to ${high}`;
  return z
    .string()
    .regex(/^\d{1,9}$/, error)
    .transform(Number)
    .pipe(z.number().min(low, error).max(high, error));
};

const ENVIRONMENT = z.object({
  FETCH_RPC_URLS: urls.optional(),
  BASE_RPC_URL: urls.optional(),
  FETCH_PER_SECOND: whole(1, 10_000).default(20),
  INDEX_SCOPE: z.enum(["selective", "full"], { error: "expected selective or full" }).optional(),
  START_BLOCK: whole(0, 999_999_999).optional(),
});

/** The settings, or one line per missing or wrong variable. An empty variable counts as missing. */
export function parseFetchSettings(
  environment: Readonly<Record<string, string | undefined>>,
): FetchSettings | { readonly problem: string } {
  const set = Object.fromEntries(Object.entries(environment).filter(([, value]) => value !== ""));
  const parsed = ENVIRONMENT.safeParse(set);
  if (!parsed.success)
    return {
      problem: parsed.error.issues.map(({ path, message }) => `${path.join()} is wrong: ${message}`).join("\n"),
    };
  const { FETCH_RPC_URLS, BASE_RPC_URL, FETCH_PER_SECOND, INDEX_SCOPE, START_BLOCK } = parsed.data;
  const found = FETCH_RPC_URLS ?? BASE_RPC_URL;
  if (found === undefined)
    return { problem: `FETCH_RPC_URLS is missing: expected the JSON-RPC URLs of ${BASE.name} nodes, or BASE_RPC_URL` };
  return { urls: found, perSecond: FETCH_PER_SECOND, scope: INDEX_SCOPE ?? null, startBlock: START_BLOCK ?? null };
}
