import { createHash } from "node:crypto";
import { expect, test } from "vitest";
import { POLICY_VERSIONS } from "../../../api/arbiter/policy/index.ts";
import { createLogStore } from "../../../api/log/store.ts";
import { connect } from "../../../api/platform/db/connection.ts";
import { createSigner, jcs } from "../../../api/platform/signing/document.ts";
import { signingKey } from "../../../api/platform/signing/keys.ts";
import {
  parseKeySet,
  parsePolicy,
  parseProof,
  verifyDocument,
  verifyProof,
} from "../../../packages/verifier/src/index.ts";
import { parseEntry } from "../../../packages/verifier/src/tlog/entry.ts";
import { ENTRY_TYPES, type EntryType } from "../../../packages/verifier/src/tlog/entry-types.ts";
import { leafHash } from "../../../packages/verifier/src/tlog/hash.ts";
import { parseVerifierKey } from "../../../packages/verifier/src/tlog/verifier-key.ts";
import { startTestChain } from "../../support/chain/chain.ts";
import { eventually } from "../../support/eventually.ts";
import { forFile } from "../../support/for-file.ts";
import { auditLog } from "../../support/log/stage.ts";
import { forgetService } from "../../support/openapi/answers.ts";
import { connectOwner } from "../../support/service/database.ts";
import { startService } from "../../support/service/service.ts";

const chain = await forFile(startTestChain());
const service = await forFile(startService({ chain }));
// The test's records are shorter than the service's, so responses need not match the OpenAPI description.
forgetService(service.url);
const owner = await forFile(await connectOwner(service.database));
const store = createLogStore(await forFile(connect(service.database.apiUrl)));

/** A record as statements for its tables. */
interface RecordRow {
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

const signer = createSigner(await signingKey(Buffer.alloc(32, 8)), "did:web:trust.example");

/** One record of each type in the order of their times, from the day on which the log began. Records of different ordinals have nothing in common. */
async function recordsOf(ordinal: number): Promise<readonly RecordRow[]> {
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

const queueIsEmpty = () => eventually(async () => (await owner.query("SELECT FROM log_pending")).rowCount, 0);
const logged = async () =>
  (await owner.query<{ type: EntryType; ref: string }>("SELECT type, ref FROM log_entry ORDER BY generation, idx"))
    .rows;
const write = async (records: readonly RecordRow[]) => {
  for (const { statements } of records) for (const { text, values } of statements) await owner.query(text, [...values]);
};
const read = async (path: string) =>
  (await fetch(`${service.url}${path}`, { headers: { accept: "application/json" } })).json();
const sha256 = (value: unknown) => createHash("sha256").update(jcs(value)).digest("hex");
const documentOf = async (type: EntryType, ref: string) => {
  const { content, id } = parseEntry((await store.find(type, ref))?.entry ?? new Uint8Array());
  expect([id, "document" in content]).toEqual([ref, true]);
  return "document" in content ? content.document : {};
};

// The announcements that the service makes when it starts.
await eventually(async () => (await logged()).length > 0, true);
await queueIsEmpty();

test("A record is queued in its own transaction, so a rollback leaves no entry and a commit exactly one, in order", async () => {
  const before = await logged();
  const queued = async () => (await owner.query("SELECT type, ref FROM log_pending ORDER BY seq")).rows;
  const names = (records: readonly RecordRow[]) => records.map(({ type, ref }) => ({ type, ref }));
  await owner.query("BEGIN");
  await write(await recordsOf(1));
  expect(await queued()).toEqual(names(await recordsOf(1)));
  await owner.query("ROLLBACK");
  await owner.query("BEGIN");
  await write(await recordsOf(2));
  await owner.query("COMMIT");
  await queueIsEmpty();
  expect((await logged()).slice(before.length)).toEqual(names(await recordsOf(2)));
});

test("The document in an entry is the one at the record's URL", async () => {
  await write(await recordsOf(3));
  await queueIsEmpty();
  const records = new Map((await recordsOf(3)).map((record) => [record.type, record]));
  for (const [type, path] of [
    ["verdict", "/arbiter/verdict/"],
    ["correction", "/arbiter/verdict/"],
    ["evaluation", "/escrow/evaluation/"],
    ["contest_answer", "/escrow/contest/"],
  ] as const) {
    const { ref, document } = records.get(type) as RecordRow;
    const entry = await documentOf(type, ref);
    expect([type, entry]).toEqual([type, JSON.parse(document ?? "")]);
    const found = (await read(`${path}${ref}`)) as Record<string, unknown>;
    expect([type, jcs(type === "contest_answer" ? found.answer : found)]).toEqual([type, jcs(entry)]);
  }
  const id = records.get("certificate")?.ref ?? "";
  const certificate = (await read(`/cert/${id}`)) as Record<string, unknown>;
  const { type, issuer, proof, "@context": _, settlement, detected, ...issued } = await documentOf("certificate", id);
  expect(certificate).toMatchObject(issued);
  expect(certificate.settlement).toMatchObject(settlement as object);
  // A number that programs may read differently is stored as text.
  expect(detected).toEqual({ at: String(2 ** 60) });
  expect([type, issuer, proof]).toEqual(["IssuedCertificate", expect.stringContaining("did:web:"), expect.anything()]);
  expect(await documentOf("proof", id)).toMatchObject({ certificate: id, fail_proof: { a: 2, zeal: 1 } });
  expect(await documentOf("reversal", id)).toMatchObject({ certificate: id, cert_url: certificate.cert_url });
});

test("A large document is logged by the hash of its canonical form, which matches the document at its URL", async () => {
  const [ref, document] = ["c".repeat(32), JSON.stringify({ zeal: "z".repeat(20_000), about: "a large one" })];
  await owner.query(
    `INSERT INTO verdict (id, category, outcome, request, document, sha256, issued_at)
     VALUES ($1, 'seller_offline', 'refund', '{}', $2, repeat('a', 64), now())`,
    [ref, document],
  );
  await queueIsEmpty();
  const { content } = parseEntry((await store.find("verdict", ref))?.entry ?? new Uint8Array());
  const url = `${service.url}/arbiter/verdict/${ref}`;
  expect(content).toEqual({ url, sha256: sha256(await read(`/arbiter/verdict/${ref}`)) });
});

test("The log contains the policies, score versions, and signing key that the service publishes", async () => {
  await queueIsEmpty();
  const types = new Set((await logged()).map(({ type }) => type));
  // No seller exam has ended in this test.
  expect(ENTRY_TYPES.filter((type) => !types.has(type))).toEqual(["seller_certificate", "seller_correction"]);
  for (const { policy } of POLICY_VERSIONS) {
    const { policy_sha256 } = await documentOf("policy", String(policy.version));
    expect(policy_sha256).toBe(sha256(await publishedPolicy(policy.version)));
  }
  const { keys } = (await read("/.well-known/jwks.json")) as { keys: { kid: string }[] };
  const [current] = keys;
  expect((await documentOf("signing_key", current?.kid ?? "")).key).toMatchObject({ kid: current?.kid });
  const versions = (await logged()).filter(({ type }) => type === "score_version").map(({ ref }) => ref);
  expect(versions).toEqual(["1"]);
  expect(await documentOf("score_version", "1")).toMatchObject({
    rules_sha256: expect.stringMatching(/^[0-9a-f]{64}$/),
  });
});

const publishedPolicy = async (version: number): Promise<unknown> => read(`/arbiter/policy?version=${version}`);

/** The documents that the log creates. All others are already signed. */
const DOCUMENT_TYPES: Partial<Record<EntryType, string>> = {
  certificate: "IssuedCertificate",
  reversal: "ReversedCertificate",
  proof: "PublishedProof",
  policy: "PublishedPolicy",
  score_version: "PublishedScoreVersion",
  signing_key: "SigningKey",
};

test("Every entry is proven offline from the served bytes, and the service has signed each document that it created", async () => {
  const issuer = ((await read("/.well-known/did.json")) as { id: string }).id;
  const expected = {
    keys: await parseKeySet(JSON.stringify(await read("/.well-known/jwks.json"))),
    issuer: service.url,
  };
  const policy = parsePolicy(((await read("/log")) as { policy: string }).policy);
  const all = await logged();
  const made = new Set<EntryType>();
  for (const [index, { type, ref }] of all.entries()) {
    const proof = parseProof(await (await fetch(`${service.url}/log/entry/${index}.tlog-proof`)).text());
    const extra = proof.extra ?? new Uint8Array();
    expect(await verifyProof(proof, leafHash(extra), policy)).toMatchObject({
      index,
      checkpoint: { size: all.length },
    });
    const { content } = parseEntry(extra);
    const members = { id: ref, index, type, version: 1 };
    expect([ref, Buffer.from(extra).toString()]).toEqual([ref, jcs({ ...content, ...members })]);
    const document = "document" in content ? content.document : { issuer: null };
    if (document.issuer !== issuer) continue;
    const { signature } = await verifyDocument(JSON.stringify(document), expected);
    expect([type, document.type, signature.valid]).toEqual([type, DOCUMENT_TYPES[type], true]);
    made.add(type);
  }
  expect([...made].toSorted()).toEqual(Object.keys(DOCUMENT_TYPES).toSorted());
});

test("The resulting log passes the audit", async () => {
  const [own] = await store.generations();
  expect(await auditLog({ owner, store, verifier: parseVerifierKey(own?.vkey ?? "") })).toEqual([]);
});
