import { setTimeout as sleep } from "node:timers/promises";
import { Failure } from "./fields.ts";
import type { Capability } from "./vocabulary.ts";

/** The parts of a wallet's verification record that the action reads. */
export interface WalletRecord {
  readonly wallet: string;
  readonly verified: boolean;
  readonly capabilities: Readonly<
    Record<Capability, { readonly result: "pass" | "fail" | null; readonly fresh: boolean }>
  >;
  readonly certs: readonly {
    readonly product: string;
    readonly result: string;
    readonly fresh: boolean;
    readonly valid_until: string;
    readonly cert_url: string;
    readonly badge_url: string;
  }[];
}

const PATIENCE_MS = 15_000;
const TRIES = 3;
const PAUSE_MS = 2_000;

export const recordUrl = (baseUrl: string, wallet: string): string => `${baseUrl}/verify?wallet=${wallet}`;

/** Reads the record, in at most three attempts. Throws a Failure if the service does not respond as documented. */
export async function readRecord(baseUrl: string, wallet: string): Promise<WalletRecord> {
  const url = recordUrl(baseUrl, wallet);
  let lastResponse = "";
  for (let time = 1; time <= TRIES; time += 1) {
    const answer = await fetch(url, {
      headers: { accept: "application/json" },
      redirect: "error",
      signal: AbortSignal.timeout(PATIENCE_MS),
    }).catch((error: unknown) => String(error));
    if (typeof answer !== "string" && answer.ok)
      return recordOf(await answer.json().catch(() => null), { url, wallet });
    lastResponse = typeof answer === "string" ? answer : `status ${answer.status}`;
    if (time < TRIES) await sleep(PAUSE_MS);
  }
  throw new Failure(`${url} did not respond: ${lastResponse}.`);
}

/** The record is about the requested wallet, whatever it states itself. */
export function recordOf(
  body: unknown,
  { url, wallet }: { readonly url: string; readonly wallet: string },
): WalletRecord {
  const record = body as Partial<WalletRecord> | null;
  if (typeof record?.verified !== "boolean" || typeof record.capabilities !== "object" || !Array.isArray(record.certs))
    throw new Failure(`${url} did not return a verification record.`);
  return { ...(record as WalletRecord), wallet: wallet.toLowerCase() };
}

/** Returns the tests whose FAIL counts against the wallet now: while there is one, no PASS makes it verified. */
export const currentFails = ({ certs }: WalletRecord): readonly string[] => [
  ...new Set(certs.flatMap(({ product, result, fresh }) => (result === "fail" && fresh ? [product] : []))),
];

/** Returns the reason why the step fails for an unverified wallet, in the verifier's words. */
export function notVerified(record: WalletRecord, { url, wallet }: { readonly url: string; readonly wallet: string }) {
  const fails = currentFails(record);
  return `The wallet ${wallet} is not verified${fails.length > 0 ? `: FAIL in ${fails.join(", ")}` : ""}: ${url}`;
}
