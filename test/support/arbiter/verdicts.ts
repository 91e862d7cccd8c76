import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import canonicalize from "canonicalize";
import type { Pool } from "pg";
import type { Arbiter } from "../../../api/arbiter/arbiter.ts";
import type { Variant } from "../../../api/arbiter/products.ts";
import { reachVerdict, type VerdictOrder, type VerdictParts } from "../../../api/arbiter/reach-verdict.ts";
import { type VerdictRequest, verdictId } from "../../../api/arbiter/request.ts";
import type { StoredVerdict, VerdictStore } from "../../../api/arbiter/store.ts";
import { inTransaction, transactionOn } from "../../../api/platform/db/connection.ts";
import type { Sale } from "../../../api/platform/http/route.ts";
import { send } from "../payments/requests.ts";
import { bareEnvironment } from "../service/environment.ts";
import type { TestService } from "../service/service.ts";
import { sha256 } from "./rows.ts";

/** A line of `/arbiter/log`. */
interface Listed {
  readonly id: string;
  readonly sha256: string;
  readonly issued_at: string;
  readonly verdict_url: string;
}

interface Page {
  readonly verdicts: readonly Listed[];
  readonly next: string | null;
}

/**
 * Reads the public list of verdicts, newest first. Returns its number of pages, and every line with the hash of its
 * document.
 */
export async function walkVerdicts(baseUrl: string) {
  const verdicts: (Listed & { readonly hash: string })[] = [];
  let pages = 0;
  for (let next: string | null = `${baseUrl}/arbiter/log`; next !== null; pages++) {
    const page = (await send(next)).body as unknown as Page;
    const hashed = page.verdicts.map(async (one) => {
      const { text } = await send(one.verdict_url);
      return { ...one, hash: sha256(canonicalize(JSON.parse(text)) ?? "") };
    });
    verdicts.push(...(await Promise.all(hashed)));
    next = page.next;
  }
  return { pages, verdicts };
}

/** Reaches and stores a verdict without a sale. */
export const recordVerdict = async (
  parts: VerdictParts,
  order: VerdictOrder,
  signal: AbortSignal,
): Promise<StoredVerdict> => parts.store.record(await reachVerdict(parts, order, signal));

/** Returns a function that completes the verdict of a sale without a payment in the journal. */
export const deciderOf =
  (arbiter: Arbiter, store: VerdictStore, pool: Pool) =>
  async (sale: Sale<VerdictRequest>, variant: Variant): Promise<StoredVerdict> => {
    const completion = await arbiter.decide(sale, variant);
    await inTransaction(pool, async (client) => {
      const transaction = transactionOn(client);
      if ("complete" in completion) await completion.complete(transaction);
      else for (const { text, values } of completion.writes) await transaction.query(text, values);
    });
    const stored = await store.get(verdictId(sale.payment));
    if (stored === null) throw new Error("a completed sale has left no verdict");
    return stored;
  };

const COMMAND = fileURLToPath(new URL("../../../scripts/arbiter-correct.ts", import.meta.url));

/** A command's exit code and output. */
export interface Ended {
  readonly code: number;
  readonly output: string;
  readonly errors: string;
}

/** Runs `npm run arbiter:correct` with these arguments and exactly this environment. */
export const correct = (env: Readonly<Record<string, string>>, ...args: readonly string[]): Promise<Ended> =>
  new Promise((resolve) => {
    const options = { env: { ...bareEnvironment(), ...env } };
    execFile(process.execPath, [COMMAND, ...args], options, (error, output, errors) =>
      resolve({ code: error === null ? 0 : Number(error.code), output, errors }),
    );
  });

/** The environment with which a service under test would run as a process. */
export function environmentOf({ config }: Pick<TestService, "config">): Record<string, string> {
  const base64url = (key: Uint8Array) => Buffer.from(key).toString("base64url");
  return {
    DATABASE_URL: config.databaseUrl,
    BASE_URL: config.baseUrl,
    BASE_RPC_URL: String(config.rpcUrls["eip155:8453"]),
    BASE_SEPOLIA_RPC_URL: String(config.rpcUrls["eip155:84532"]),
    FACILITATOR_URL: "http://127.0.0.1:1",
    PAY_TO_ADDRESS: config.payTo,
    SIGNING_KEY: base64url(config.signingKey),
    SEALING_KEY: base64url(config.sealingKey),
    DECOY_SEED: base64url(config.decoySeed),
    ARBITER_PRIVATE_KEY: String(config.arbiterKey),
    ARBITER_ALLOWED_ORIGINS: config.arbiterAllowedOrigins.join(","),
    GITHUB_API_URL: config.github.apiUrl,
  };
}
