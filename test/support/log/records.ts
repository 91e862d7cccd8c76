import { createSigner, type Signer } from "../../../api/platform/signing/document.ts";
import { signingKey } from "../../../api/platform/signing/keys.ts";
import type { EntryType } from "../../../packages/verifier/src/tlog/entry-types.ts";

/** A record as statements for its tables. */
export interface RecordRow {
  readonly type: EntryType;
  readonly ref: string;
  readonly statements: readonly { readonly text: string; readonly values: readonly unknown[] }[];
  /** The stored document, or null if the log creates its own. */
  readonly document: string | null;
}

const CERTIFICATE = `INSERT INTO certificate
    (id, product, test_version, result, level, wallet, checks, detected, issued_at, valid_until, chain, asset, nonce, tx, block_number, amount, pay_to)
  VALUES ($1, 'basic', 1, $2, 'Conformant', $3, '{"paid":"pass"}', $4, $5, $5::timestamptz + interval '30 days', 8453,
    decode(repeat('02', 20), 'hex'), decode(repeat($1, 4), 'hex'), decode(repeat('03', 32), 'hex'), 1, 250000,
    decode(repeat('04', 20), 'hex'))`;
const MARK = `INSERT INTO settlement_mark (chain, asset, payer, nonce, kind, at)
  VALUES (8453, decode(repeat('02', 20), 'hex'), $2, decode(repeat($1, 4), 'hex'), 'reversed', $3)`;
const PROOF = "INSERT INTO published_proof (certificate, document, published_at) VALUES ($1, $2, $3)";
const VERDICT = `INSERT INTO verdict (id, supersedes, category, outcome, request, document, sha256, issued_at)
  VALUES ($1, $2, 'seller_offline', 'refund', '{}', $3, repeat('a', 64), $4)`;
const EVALUATION = `INSERT INTO escrow_evaluation (payment, decision, rule, record, document)
  VALUES ($1, 'release', 'a rule', $1, $2)`;
const CONTESTED = [
  `INSERT INTO escrow_task (payment, chain, contract, info, decision, merchant, amount, held_block, gas, state)
   VALUES ($1, 8453, decode(repeat('05', 20), 'hex'), '{}', 'release', decode(repeat('05', 20), 'hex'), 1, 1, 0, 'final')`,
  "INSERT INTO escrow_window (payment, seconds, until, conditions, promised, delivered) VALUES ($1, 60, 1, '{}', '{}', '{}')",
  `INSERT INTO escrow_contest (payment, merchant, claim, claim_sha256, signature, made_at, is_open, next_attempt_at)
   VALUES ($1, decode(repeat('05', 20), 'hex'), '{}', $1, '\\x00', 1, false, now())`,
];
const ANSWER = `INSERT INTO escrow_contest_answer (payment, decision, rule, record, document)
  VALUES ($1, 'refund', 'a rule', $1, $2)`;

/** Records of the service at trust.example, from the day on which the log began. */
export async function recordMaker() {
  const signer = createSigner(await signingKey(Buffer.alloc(32, 8)), "did:web:trust.example");
  return (ordinal: number) => recordsOf(signer, ordinal);
}

/** One record of each type in the order of their times. Records of different ordinals have nothing in common. */
async function recordsOf(signer: Signer, ordinal: number): Promise<readonly RecordRow[]> {
  const id = ordinal.toString(16);
  const at = (second: number) => new Date(Date.UTC(2026, 10, 1) + (ordinal * 10 + second) * 1_000);
  const stored = (type: string, second: number) => {
    const document = { type, zeal: 1, about: `record ${ordinal}`, "@context": [], issuer: signer.issuer };
    return signer.signAsText(document, at(second));
  };
  const certificate = id.padStart(16, "0");
  const wallet = Buffer.from(id.padStart(40, "0"), "hex");
  const verdict = `a${id.padStart(31, "0")}`;
  const correction = `b${id.padStart(31, "0")}`;
  const payment = Buffer.from(id.padStart(64, "0"), "hex");
  const [first, second, evaluation, answer] = (await Promise.all(
    ["Verdict", "Correction", "Evaluation", "Answer"].map((name, place) => stored(name, place + 3)),
  )) as [string, string, string, string];
  const hex = `0x${payment.toString("hex")}`;
  return [
    {
      type: "certificate",
      ref: certificate,
      document: null,
      statements: [
        { text: CERTIFICATE, values: [certificate, "fail", wallet, JSON.stringify({ at: 2 ** 60 }), at(0)] },
      ],
    },
    {
      type: "proof",
      ref: certificate,
      document: null,
      statements: [{ text: PROOF, values: [certificate, JSON.stringify({ zeal: 1, a: 2 }), at(1)] }],
    },
    {
      type: "reversal",
      ref: certificate,
      document: null,
      statements: [{ text: MARK, values: [certificate, wallet, at(2)] }],
    },
    {
      type: "verdict",
      ref: verdict,
      document: first,
      statements: [{ text: VERDICT, values: [verdict, null, first, at(3)] }],
    },
    {
      type: "correction",
      ref: correction,
      document: second,
      statements: [{ text: VERDICT, values: [correction, verdict, second, at(4)] }],
    },
    {
      type: "evaluation",
      ref: hex,
      document: evaluation,
      statements: [{ text: EVALUATION, values: [payment, evaluation] }],
    },
    {
      type: "contest_answer",
      ref: hex,
      document: answer,
      statements: [
        ...CONTESTED.map((text) => ({ text, values: [payment] })),
        { text: ANSWER, values: [payment, answer] },
      ],
    },
  ];
}
