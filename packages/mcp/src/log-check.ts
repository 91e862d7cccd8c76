import type { CheckListed, Expectation, ListedReport, Policy } from "../../verifier/src/index.ts";
import { type Service, ServiceError } from "./service.ts";
import type { Verifier } from "./verifier.ts";

export interface LogQuestion {
  /** Null if no log and witnesses are trusted. */
  readonly policy: Policy | null;
  /** Proofs that came with the credential. */
  readonly proofs: readonly string[];
  readonly expected: Expectation;
}

type Credential = CheckListed["certificates"][number];

const TIMEOUT_MS = 10_000;

/**
 * Compares the certificates that a credential lists with the public log.
 * @param credential one whose signature is valid
 */
export async function checkLog(
  { credentialSubject }: Credential,
  { policy, proofs, expected }: LogQuestion,
  { service, verifier }: { readonly service: Service; readonly verifier: Verifier },
): Promise<ListedReport> {
  if (policy === null)
    return { state: "not_checked", reason: "No policy names the log and witnesses to trust.", entries: [] };
  const { wallet, id, conformance } = Object(credentialSubject) as Readonly<Record<string, unknown>>;
  const certificates = Array.isArray(conformance) ? conformance.map((one) => Object(one) as Credential) : [];
  const fetchProof = (id: string) => proofOf(id, service);
  return verifier.checkListed({ wallet: String(wallet ?? id), certificates, policy, expected, proofs, fetchProof });
}

async function proofOf(id: string, service: Service): ReturnType<CheckListed["fetchProof"]> {
  if (!/^([0-9a-f]{16}){1,2}$/.test(id)) return { absent: "this is not a certificate's id" };
  try {
    const request = { path: `/cert/${id}.tlog-proof`, headers: { accept: "text/plain" }, timeoutMs: TIMEOUT_MS };
    const { status, text } = await service.send(request);
    return status === 200 ? { proof: text } : { absent: `the service answered ${status}` };
  } catch (error) {
    if (error instanceof ServiceError) return { absent: error.message };
    throw error;
  }
}
