import { z } from "zod";
import { MAIN_NETWORK, NETWORKS } from "../../api/kernel/networks.ts";
import { SCOPES, type Scope } from "../ledger.ts";

/** What `npm run index:fetch` is configured with. */
export interface FetchSettings {
  /** One or several nodes of Base, tried in turn. */
  readonly urls: readonly string[];
  /** Requests a second to each of them. */
  readonly perSecond: number;
  /** Null: that of the folder's files, else authorized payments, which the index's default needs. */
  readonly scope: "full" | "authorised" | null;
  /** Null: 90 days before the newest final block. */
  readonly startBlock: number | null;
}

const BASE = NETWORKS[MAIN_NETWORK];
const isHttp = (text: string) => URL.canParse(text) && /^https?:$/.test(new URL(text).protocol);
const listed = (text: string) => text.split(",").map((item) => item.trim());
const urls = z
  .string({ error: `expected the JSON-RPC URL of a ${BASE.name} node` })
  .refine((text) => listed(text).every(isHttp), "expected HTTP or HTTPS URLs, separated by commas")
  .transform(listed);
const whole = (low: number, high: number) =>
  z
    .string()
    .refine(
      (text) => /^\d{1,9}$/.test(text) && Number(text) >= low && Number(text) <= high,
      `expected a whole number from ${low} to ${high}`,
    )
    .transform(Number);

const ENVIRONMENT = z.object({
  FETCH_RPC_URLS: urls.optional(),
  BASE_RPC_URL: urls.optional(),
  FETCH_PER_SECOND: whole(1, 10_000).default(20),
  INDEX_SCOPE: z.enum(SCOPES, { error: "expected selective, full, or authorised" }).optional(),
  START_BLOCK: whole(0, 999_999_999).optional(),
});

const scopeOf = (scope: Scope | undefined): FetchSettings["scope"] =>
  scope === undefined ? null : scope === "full" ? "full" : "authorised";

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
  const env = parsed.data;
  const found = env.FETCH_RPC_URLS ?? env.BASE_RPC_URL;
  if (found === undefined)
    return { problem: `FETCH_RPC_URLS is missing: expected the JSON-RPC URLs of ${BASE.name} nodes, or BASE_RPC_URL` };
  return {
    urls: found,
    perSecond: env.FETCH_PER_SECOND,
    scope: scopeOf(env.INDEX_SCOPE),
    startBlock: env.START_BLOCK ?? null,
  };
}
