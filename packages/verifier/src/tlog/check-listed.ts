import type { JsonObject } from "../strict-json.ts";
import type { Expectation } from "../verify-document.ts";
import { checkLogged } from "./check-logged.ts";
import { type Policy, witnessedAt } from "./policy.ts";

/** The certificates that a wallet's record (`certs`) or credential (`conformance`) lists, and how to check them. */
export interface CheckListed {
  /** The wallet, or the origin of a seller. */
  readonly wallet: string;
  readonly certificates: readonly JsonObject[];
  readonly policy: Policy;
  /** The expected signer of the documents in the entries. */
  readonly expected: Expectation;
  /** The proofs that came with the list. */
  readonly proofs: readonly (string | Uint8Array)[];
  /** Fetches the proof at a certificate's `.tlog-proof`, or returns the reason why there is none. */
  readonly fetchProof: (id: string) => Promise<{ readonly proof: string | Uint8Array } | { readonly absent: string }>;
}

export interface ListedReport {
  /**
   * `proven`: each certificate that counts is in the witnessed log. `absent`: at least one has no proof, so it relies
   * on the service alone. `refused`: a proof is invalid. `not_checked`: no certificate counts.
   */
  readonly state: "proven" | "absent" | "refused" | "not_checked";
  readonly reason: string;
  readonly entries: readonly {
    readonly certificate: string;
    readonly log: string;
    readonly index: number;
    readonly witnesses: readonly { readonly name: string; readonly at: string }[];
  }[];
}

/** The maximum number of proofs to fetch. */
const MOST_ASKED = 10;

/**
 * Checks the proofs that came with a list of certificates, and fetches the proofs of the others that count (`fresh`). A
 * proof that came along or is served must be valid. Proofs are not required: a list without them is `absent`.
 */
export async function checkListed({ fetchProof, proofs, ...given }: CheckListed): Promise<ListedReport> {
  const { wallet, certificates, policy, expected } = given;
  const entries: ListedReport["entries"][number][] = [];
  const refusals: string[] = [];
  const take = async (proof: string | Uint8Array, about: readonly JsonObject[]): Promise<void> => {
    const report = await checkLogged({ proof, policy, expected, subject: { wallet, certificates: about } });
    if (!report.valid) return void refusals.push(`${report.code}: ${report.reason}`);
    const { log, index, id, witnesses } = report;
    const times = witnesses.map((one) => ({ name: one.name, at: witnessedAt(one) }));
    entries.push({ certificate: id, log, index, witnesses: times });
  };
  for (const proof of proofs) await take(proof, certificates);
  const shown = new Set(entries.map(({ certificate }) => certificate));
  const counting = certificates.filter(({ id, fresh }) => fresh === true && !shown.has(String(id)));
  const absent = counting
    .slice(MOST_ASKED)
    .map(({ id }) => `${id}: not fetched, because of the limit of ${MOST_ASKED}`);
  const asked = counting.slice(0, MOST_ASKED);
  const answers = await Promise.all(asked.map(({ id }) => fetchProof(String(id))));
  // Sequential, so that the report is in the list's order.
  for (const [place, answer] of answers.entries())
    if ("proof" in answer) await take(answer.proof, asked.slice(place, place + 1));
    else absent.push(`${asked[place]?.id}: ${answer.absent}`);
  const listed = (reasons: readonly string[]): string => reasons.join(" \u00b7 ").slice(0, 2_000);
  if (refusals.length > 0) return { state: "refused", reason: listed(refusals), entries };
  if (absent.length > 0) return { state: "absent", reason: `There is no proof: ${listed(absent)}`, entries };
  return entries.length === 0
    ? { state: "not_checked", reason: "No certificate that counts is listed.", entries }
    : {
        state: "proven",
        reason: "Each certificate that counts is in the log, witnessed as the policy requires.",
        entries,
      };
}
