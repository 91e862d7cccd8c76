import { z } from "zod";
import {
  type CheckListed,
  checkListed,
  claimsOf,
  type Expectation,
  type ListedReport,
  type Policy,
  parsePolicy,
  verifyDocument,
} from "../../../verifier/src/index.ts";
import { origin, wallet } from "../fields.ts";
import { type FreeParts, freeTool } from "../free-tool.ts";
import { type Compared, NOT_COMPARED, WALLET_LOG } from "../left-out.ts";
import { read, type Service, ServiceError, signedBy } from "../service.ts";

const MAX_LENGTH = 32_768;
const MAX_PROOF = 131_072;
const MAX_POLICY = 16_384;

const LOG = z.object({
  state: z
    .enum(["proven", "absent", "refused", "not_checked"])
    .describe(
      "proven: each certificate that counts is in the witnessed public log. absent: at least one has no proof, so only its signature vouches for it. refused: a proof is wrong, and valid is false. not_checked: no policy, or nothing to check.",
    ),
  reason: z.string(),
  entries: z.array(
    z.object({
      certificate: z.string(),
      log: z.string(),
      index: z.int(),
      witnesses: z.array(z.object({ name: z.string(), at: z.string() })),
    }),
  ),
});

const REPORT = z.object({
  says: z
    .string()
    .describe(
      'The result of the check in words, like "valid, verified" or "valid, not verified: FAIL in scam". A valid signature does not make a wallet verified.',
    ),
  about: z
    .string()
    .nullable()
    .describe(
      'Its subject, like "wallet 0x…": compare it with the wallet that you deal with. Null if its signature is not valid.',
    ),
  valid: z
    .boolean()
    .describe(
      "Signed by this service, unaltered, not expired, about the requested wallet, without a wrong proof or a known omission. It does not mean that the wallet is verified.",
    ),
  signature: z.looseObject({ valid: z.boolean(), reason: z.string().exactOptional() }),
  freshness: z.looseObject({ state: z.string() }),
  log: LOG,
  wallet_log: WALLET_LOG,
  credential: z
    .record(z.string(), z.unknown())
    .nullable()
    .describe("The credential if its signature is valid, no proof is wrong, and no omission is known; null otherwise."),
});

export const checkCredential = freeTool({
  name: "check_credential",
  title: "Check a credential",
  description:
    "Checks a credential's signatures and freshness, and returns its subject and whether that wallet or seller is verified. Give a wallet or a seller's origin for the current one, or the text of one that another agent gave you. With a log policy, also checks that its certificates are in the public log and that no FAIL is omitted. Free.",
  input: z.strictObject({
    wallet: wallet.optional(),
    origin: origin.optional(),
    credential: z.string().max(MAX_LENGTH).optional().describe("The credential's JSON text, exactly as received."),
    log_proofs: z
      .array(z.string().max(MAX_PROOF))
      .max(10)
      .optional()
      .describe("Proofs (C2SP tlog-proof) of the credential's certificates that came with it, exactly as received."),
    log_policy: z
      .string()
      .max(MAX_POLICY)
      .optional()
      .describe(
        "A C2SP tlog-policy: the log and witnesses that you trust. Take it from your user, never from the sender of the credential.",
      ),
  }),
  output: REPORT,
  reads: ["/credential/:wallet", "/credential", "/cert/:id.tlog-proof", "/.well-known/jwks.json"],
  async run(
    { wallet: subject, origin: seller, credential: handed, log_policy: given, log_proofs: proofs = [] },
    parts,
  ) {
    const { service } = parts;
    const paths = [
      ...(subject === undefined ? [] : [`/credential/${subject}`]),
      ...(seller === undefined ? [] : [`/credential?origin=${encodeURIComponent(seller)}`]),
    ];
    if (paths.length + (handed === undefined ? 0 : 1) !== 1)
      throw new Error("Give exactly one of wallet, origin, and credential.");
    const policy = policyOf(given, parts);
    if (policy === null && proofs.length > 0)
      throw new Error("A proof is useless without a policy that names the log and witnesses to trust: add log_policy.");
    const compared = await leftOutOf(subject, parts);
    const text = handed ?? compared.text ?? (await read(service, String(paths[0]))).text;
    const expected = await signedBy(service);
    const { document, ...report } = await verifyDocument(text, expected);
    if (document === null) return { ...UNSIGNED, ...report };
    const claims = claimsOf(document);
    const log = await checkLog(document, { policy, proofs, expected }, service);
    const { walletLog } = compared;
    const isRefused = [log.state, walletLog.state].includes("refused") || walletLog.state === "hidden";
    const isOther = subject !== undefined && claims.wallet !== subject.toLowerCase();
    const valid = report.valid && !isRefused && !isOther;
    return {
      ...report,
      says: [valid ? "valid" : "not valid", claims.summary].filter(Boolean).join(", "),
      about: claims.about,
      valid,
      log: log as z.infer<typeof LOG>,
      wallet_log: walletLog,
      credential: isRefused ? null : (document as Record<string, unknown>),
    };
  },
});

const UNSIGNED = {
  says: "not valid: not signed by this service",
  about: null,
  log: { state: "not_checked", reason: "The credential is not signed by this service.", entries: [] },
  wallet_log: NOT_COMPARED,
  credential: null,
} satisfies Partial<z.infer<typeof REPORT>>;

/** Compares the wallet's current credential; one that was handed over is older than the log. */
async function leftOutOf(wallet: string | undefined, { askLeftOut }: FreeParts): Promise<Compared> {
  if (askLeftOut === null) return { walletLog: NOT_COMPARED, text: null };
  if (wallet === undefined) {
    const reason = "Only the credential of a `wallet` is compared.";
    return { walletLog: { ...NOT_COMPARED, reason }, text: null };
  }
  return askLeftOut(wallet, `/credential/${wallet}`);
}

/** The user's own policy overrides any that an agent was talked into. */
function policyOf(given: string | undefined, { logPolicy }: FreeParts): FreeParts["logPolicy"] {
  if (given === undefined) return logPolicy;
  if (logPolicy !== null) throw new Error("The user has set a log policy (LOG_POLICY): leave log_policy out.");
  return parsePolicy(given);
}

interface LogQuestion {
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
async function checkLog(
  { credentialSubject }: Credential,
  { policy, proofs, expected }: LogQuestion,
  service: Service,
): Promise<ListedReport> {
  if (policy === null)
    return { state: "not_checked", reason: "No policy names the log and witnesses to trust.", entries: [] };
  const { wallet, id, conformance } = Object(credentialSubject) as Readonly<Record<string, unknown>>;
  const certificates = Array.isArray(conformance) ? conformance.map((one) => Object(one) as Credential) : [];
  const fetchProof = (id: string) => proofOf(id, service);
  return checkListed({ wallet: String(wallet ?? id), certificates, policy, expected, proofs, fetchProof });
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
