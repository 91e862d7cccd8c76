import { createHash } from "node:crypto";
import { expect, test } from "vitest";
import { POLICY_VERSIONS } from "../../../api/arbiter/policy/index.ts";
import { createLogStore } from "../../../api/log/store.ts";
import { connect } from "../../../api/platform/db/connection.ts";
import { jcs } from "../../../api/platform/signing/document.ts";
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
import { type RecordRow, recordMaker } from "../../support/log/records.ts";
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
const recordsOf = await recordMaker();

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
