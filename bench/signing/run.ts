// Signing and verifying a document beside bare `jose` on the same bytes: one process, the same key, in turns. A document has two
// Ed25519 signatures (jws and proofValue), so the peer makes or checks two as well, over bytes that it is handed ready: the
// canonical document, and the 64 bytes that the proofValue signs. Ours parses, canonicalizes and hashes besides.
import { createHash } from "node:crypto";
import { type CryptoKey, FlattenedSign, flattenedVerify, importJWK } from "jose";
import type { CertificateSummary } from "../../api/certification/certificate-summary.ts";
import { credential } from "../../api/certification/credential.ts";
import { verificationRecord } from "../../api/certification/verification.ts";
import { SCORE_PRICES } from "../../api/score/products.ts";
import { didWeb } from "../../api/signing/did.ts";
import { createSigner } from "../../api/signing/document.ts";
import { signingKey } from "../../api/signing/keys.ts";
import { hashData, jcs } from "../../api/signing/proof-value.ts";
import { parseKeySet, verifyDocument } from "../../packages/verifier/src/index.ts";
import { median, percentile } from "../programs.ts";

/** Many short turns, so that other load on the machine hits both sides equally. */
const ROUNDS = 41;
const MS = 150;
/**
 * A usual credential, and the largest: its goal is not the same, since canonical JSON alone takes longer than two
 * signatures.
 */
const USUAL = 3;
const LARGEST = 100;
const GOAL = 0.8;
const BASE_URL = "https://trust.example";
const NOW = new Date("2026-11-24T12:00:00.000Z");

type Job = () => Promise<unknown>;

interface Rate {
  /** How many times per second the job runs, one after the other. */
  readonly perSecond: number;
  /** Processor time per job in microseconds, over all threads; other programs' load hardly affects it. */
  readonly cpuMicros: number;
}

async function rate(job: Job): Promise<Rate> {
  const [start, before] = [performance.now(), process.cpuUsage()];
  let done = 0;
  for (; performance.now() - start < MS; done++) await job();
  const { user, system } = process.cpuUsage(before);
  return { perSecond: (done * 1_000) / (performance.now() - start), cpuMicros: (user + system) / done };
}

/** A wallet with this many certificates, all passed in the last month. */
function document(certificates: number) {
  const wallet = "0x70997970c51812dc3a010c7d01b50e0d17dc79c8";
  const standing = (n: number): CertificateSummary => ({
    id: createHash("sha256").update(String(n)).digest("hex").slice(0, 16),
    product: n % 2 === 0 ? "basic" : "suite",
    testVersion: 1,
    result: "pass",
    level: "Conformant",
    issuedAt: new Date(NOW.getTime() - n * 3_600_000),
    validUntil: new Date(NOW.getTime() + 86_400_000 * 30 - n * 3_600_000),
    reversedAt: null,
  });
  const facts = {
    wallet,
    activity: null,
    certificates: Array.from({ length: certificates }, (_, n) => standing(n)),
  } as const;
  return credential(
    verificationRecord(facts, { baseUrl: BASE_URL, scorePrice: SCORE_PRICES.one }, NOW),
    didWeb(BASE_URL),
    `${BASE_URL}/credential/${wallet}`,
  );
}

interface Pair {
  readonly ours: Job;
  readonly peer: Job;
}

async function jobs(
  certificates: number,
): Promise<Readonly<Record<"sign" | "verify" | "verifyUnsorted" | "verifyDocument", Pair> & { bytes: number }>> {
  const key = await signingKey(Buffer.alloc(32, 7));
  const jwk = key.privateKey.export({ format: "jwk" });
  const [privateKey, publicKey] = (await Promise.all([
    importJWK({ ...jwk, alg: "EdDSA" }),
    importJWK({ ...key.publicJwk }),
  ])) as [CryptoKey, CryptoKey];
  const signer = createSigner(key, didWeb(BASE_URL));
  const keys = await parseKeySet(JSON.stringify({ keys: [key.publicJwk] }));
  const unsigned = document(certificates);
  const signed = signer.sign(unsigned, NOW);
  const text = JSON.stringify(signed);
  const { proofValue: _, ...options } = signed.proof;
  const canonical = jcs(unsigned);
  const payloads = [Buffer.from(canonical), hashData(options, canonical)];
  const header = { alg: "EdDSA", kid: key.publicJwk.kid };
  const bare = (payload: Buffer) => new FlattenedSign(payload).setProtectedHeader(header).sign(privateKey);
  const tokens = await Promise.all(payloads.map(bare));
  const check = (payload: Buffer | undefined, token: (typeof tokens)[number]) =>
    flattenedVerify({ ...token, payload: payload?.toString("base64url") ?? "" }, publicKey, { algorithms: ["EdDSA"] });
  /** What someone with jose and a canonicalizer would write, without strict checks. */
  const byHand = () => {
    const { proof, ...rest } = JSON.parse(text) as typeof signed;
    const { proofValue: _, ...stated } = proof;
    const ofRest = jcs(rest);
    return Promise.all(
      [Buffer.from(ofRest), hashData(stated, ofRest)].map((payload, i) => check(payload, tokens[i] ?? never())),
    );
  };
  const ours = (document: string) => async () => {
    const { valid } = await verifyDocument(document, { keys, issuer: BASE_URL, at: NOW });
    if (!valid) throw new Error("a document of ours is not valid");
  };
  const peer = () => Promise.all(tokens.map((token) => flattenedVerify(token, publicKey, { algorithms: ["EdDSA"] })));
  return {
    bytes: payloads[0]?.length ?? 0,
    sign: {
      ours: async () => signer.sign(unsigned, NOW),
      peer: () => Promise.all(payloads.map(bare)),
    },
    verifyDocument: { ours: ours(text), peer: byHand },
    verify: { ours: ours(text), peer },
    verifyUnsorted: { ours: ours(JSON.stringify({ proof: signed.proof, ...unsigned })), peer },
  };
}

function never(): never {
  throw new Error("there is a token for each payload");
}

async function compare(name: string, { ours, peer }: Pair): Promise<number> {
  for (const job of [ours, peer]) await rate(job);
  const runs: { readonly ours: Rate; readonly peer: Rate }[] = [];
  for (let round = 0; round < ROUNDS; round++) runs.push({ ours: await rate(ours), peer: await rate(peer) });
  const of = (who: "ours" | "peer", figure: keyof Rate) =>
    String(Math.round(median(runs.map((run) => run[who][figure])))).padStart(5);
  const ratios = runs.map((run) => run.ours.perSecond / run.peer.perSecond);
  const cpu = median(runs.map((run) => run.peer.cpuMicros / run.ours.cpuMicros));
  const spread = [0.1, 0.9].map((share) => percentile(ratios, share).toFixed(2)).join(" to ");
  console.log(
    `${name.padEnd(20)} ours ${of("ours", "perSecond")} /s   jose ${of("peer", "perSecond")} /s   ` +
      `ratio ${median(ratios).toFixed(2)} (p10 to p90: ${spread})   ` +
      `CPU ${of("ours", "cpuMicros")} and ${of("peer", "cpuMicros")} µs, ratio ${cpu.toFixed(2)}`,
  );
  return median(ratios);
}

/** The ratios of signing and of verifying a credential with this many certificates. */
async function measure(certificates: number): Promise<readonly number[]> {
  const { bytes, sign, verify, verifyUnsorted, verifyDocument: byHand } = await jobs(certificates);
  const ratios = [await compare(`sign, ${bytes} bytes`, sign), await compare(`verify, ${bytes} bytes`, verify)];
  await compare("  members unsorted", verifyUnsorted);
  await compare("  from the document", byHand);
  return ratios;
}

console.log(`two Ed25519 signatures a document on either side; ${ROUNDS} rounds of ${MS} ms each, in turns; medians`);
const ratios = await measure(USUAL);
await measure(LARGEST);
const reached = ratios.every((ratio) => ratio >= GOAL);
console.log(
  `goal: at least ${GOAL} of bare jose for a credential of ${USUAL} certificates: ${reached ? "reached" : "missed"}`,
);
process.exitCode = reached ? 0 : 1;
