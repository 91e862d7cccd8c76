import { bytesToHex } from "@noble/hashes/utils.js";
import { jcs } from "../jcs.ts";
import { quote, Refusal } from "../refusal.ts";
import { isObject, type Json, type JsonObject, objectIn, parseStrictJson, parseUnsignedJson } from "../strict-json.ts";
import { ENTRY_TYPES, type EntryType } from "./entry-types.ts";
import { sha256 } from "./hash.ts";
import { MAX_ENTRY_BYTES } from "./tile.ts";

/** An entry of the service's log, version 1 (docs/log.md), whose type may be newer than this verifier. */
export interface AnyEntry {
  readonly index: number;
  readonly type: string;
  /** The id of the record: a certificate's, a verdict's, a payment's, or a version. */
  readonly id: string;
  /** The signed document itself, or, if it is large, the SHA-256 of its RFC 8785 form in hex and its URL. */
  readonly content: { readonly document: JsonObject } | { readonly sha256: string; readonly url: string };
}

/** An entry of a type that this verifier knows. */
export interface Entry extends AnyEntry {
  readonly type: EntryType;
}

const FORMS = ["document,id,index,type,version", "id,index,sha256,type,url,version"];

/** The name of a type, known or not. */
const TYPE = /^[a-z][a-z0-9_]{0,63}$/;

const refuse = (reason: string): never => {
  throw new Refusal("malformed_entry", `the entry is not one of this log: ${reason}`);
};

/**
 * Parses an entry in its one canonical form (RFC 8785). An entry of unknown type is refused, because its meaning cannot
 * be checked.
 * @throws Refusal `malformed_entry`, or of `parseStrictJson`
 */
export function parseEntry(bytes: Uint8Array): Entry {
  const entry = parseAnyEntry(bytes);
  return isKnown(entry) ? entry : refuse(`its type is ${quote(entry.type)}, which this verifier does not know`);
}

/** Parses an entry of any type. */
export function parseAnyEntry(bytes: Uint8Array): AnyEntry {
  if (bytes.length > MAX_ENTRY_BYTES) refuse(`it has ${bytes.length} bytes`);
  const entry = parseStrictJson(bytes);
  if (!isObject(entry)) return refuse("it is not a JSON object");
  if (jcs(entry) !== new TextDecoder().decode(bytes)) refuse("it is not in canonical form (RFC 8785)");
  if (!FORMS.includes(Object.keys(entry).join())) refuse(`its members are ${quote(Object.keys(entry).join())}`);
  const { index, type, id, version, document, sha256: digest, url } = entry;
  if (version !== 1) refuse(`its version is ${quote(version)}, but this verifier supports only version 1; update it`);
  if (typeof index !== "number" || index < 0) return refuse(`its index is ${quote(index)}`);
  if (typeof type !== "string" || !TYPE.test(type)) return refuse(`its type is ${quote(type)}`);
  if (typeof id !== "string" || id === "") return refuse("it has no id");
  if (isObject(document)) return { index, type, id, content: { document } };
  if (typeof digest !== "string" || !/^[0-9a-f]{64}$/.test(digest) || typeof url !== "string")
    return refuse("it needs a document, or a sha256 and a url");
  return { index, type, id, content: { sha256: digest, url } };
}

export const isKnownType = (type: string): type is EntryType => ENTRY_TYPES.some((one) => one === type);
export const isKnown = (entry: AnyEntry): entry is Entry => isKnownType(entry.type);

/** Returns the SHA-256 of the RFC 8785 form, in hex. */
export const documentSha256 = (document: JsonObject): string =>
  bytesToHex(sha256(new TextEncoder().encode(jcs(document))));

/** Returns the document of an entry from the response at its URL: a contest's record has it as its `answer`. */
export function publishedDocument(type: string, source: string | Uint8Array): string | Uint8Array {
  if (type !== "contest_answer") return source;
  const record = parseUnsignedJson(source);
  const answer = isObject(record) ? record.answer : undefined;
  return isObject(answer) ? JSON.stringify(answer) : source;
}

/**
 * The members in which a certificate's record and its entry must agree. A reorganization may move the settlement later.
 */
const CERTIFICATE_MEMBERS = [
  "id",
  "product",
  "test_version",
  "verdict",
  "level",
  "checks",
  "detected",
  "wallet",
  "issued_at",
  "valid_until",
  "cert_url",
];

/**
 * The members in which a seller's record and its entry must agree, in addition to its checks and the digest of its
 * evidence.
 */
const SELLER_MEMBERS = [
  "id",
  "product",
  "origin",
  "path_prefix",
  "request",
  "pay_to",
  "bought_by",
  "verdict",
  "level",
  "issued_at",
  "valid_until",
  "cert_url",
];

/**
 * Checks that an entry is about this record: a signed document is the entry's own; a certificate's record agrees with
 * the entry of its issuance, or is the one that was reversed or whose proof was published.
 * @throws Refusal `entry_mismatch`, or of reading the record
 */
export function bindEntry(entry: Entry, source: string | Uint8Array): void {
  const record = parseUnsignedJson(source);
  const difference = isObject(record) ? differenceOf(entry, record) : "the record is not a JSON object";
  if (difference !== null) throw new Refusal("entry_mismatch", `the entry is not about this record: ${difference}`);
}

/**
 * The names of members in a list of certificates, and in the certificate itself. A list of exams has no test version.
 */
const LISTED_MEMBERS = [
  ["id", "id"],
  ["product", "product"],
  ["test_version", "test_version"],
  ["result", "verdict"],
  ["level", "level"],
  ["issued", "issued_at"],
  ["valid_until", "valid_until"],
  ["cert_url", "cert_url"],
] as const;

/**
 * Checks that an entry is a certificate in the list of this wallet's, or this origin's, record or credential.
 * @param certificates members of the record's `certs` or of the credential's `conformance`
 * @throws Refusal `entry_mismatch`
 */
export function bindListed(entry: Entry, listed: Listed): void {
  const difference = listedDifference(entry, listed);
  if (difference === null) return;
  const ids = listed.certificates.map(({ id }) => quote(id)).join(", ");
  throw new Refusal("entry_mismatch", `the entry is none of the certificates ${ids}: ${difference}`);
}

interface Listed {
  /** The wallet, or the origin of a seller, with its path prefix if the seller is a part of the origin. */
  readonly wallet: string;
  readonly certificates: readonly JsonObject[];
}

function listedDifference({ type, id, content }: Entry, { wallet, certificates }: Listed): string | null {
  const isCertificate = type === "certificate" || type === "seller_certificate";
  if (!isCertificate || "sha256" in content) return `it is the ${type} ${quote(id)}`;
  const { document } = content;
  const certificate = certificates.find((one) => one.id === id);
  if (certificate === undefined) return `it is about ${quote(id)}`;
  const holder = type === "certificate" ? document.wallet : document.origin;
  // A seller may be a part of an origin; its record then also has exams of the whole origin.
  const isPart = type === "seller_certificate" && wallet.startsWith(`${holder}/`);
  if (holder !== wallet && !isPart)
    return `it belongs to ${type === "certificate" ? "the wallet" : "the seller"} ${quote(holder)}`;
  const different = LISTED_MEMBERS.find(([listed, own]) => text(certificate[listed]) !== text(document[own]));
  return different === undefined ? null : `they differ in ${different[0]}`;
}

function differenceOf({ type, id, content }: Entry, record: JsonObject): string | null {
  if ("sha256" in content)
    return documentSha256(record) === content.sha256 ? null : "the logged document has a different sha256";
  const { document } = content;
  if (jcs(record) === jcs(document)) return null;
  if (!OF_CERTIFICATES.includes(type)) return "the logged document is a different one";
  if (record.id !== id) return `it is about ${quote(id)}`;
  if (type === "certificate") {
    const different = CERTIFICATE_MEMBERS.find((name) => text(record[name]) !== text(document[name]));
    return different === undefined ? null : `they differ in ${different}`;
  }
  if (type === "seller_certificate") return sellerDifference(record, document);
  if (document.certificate !== id) return `its document is about ${quote(document.certificate)}`;
  if (type === "seller_correction") return reasonOf(record) === document.reason ? null : "they differ in its reason";
  return type === "reversal" || text(record.proof) === text(document.fail_proof) ? null : "they differ in proof";
}

/** Types of entries whose document is not the record itself. */
const OF_CERTIFICATES: readonly Entry["type"][] = [
  "certificate",
  "reversal",
  "proof",
  "seller_certificate",
  "seller_correction",
];

function sellerDifference(record: JsonObject, document: JsonObject): string | null {
  const different = SELLER_MEMBERS.find((name) => text(record[name]) !== text(document[name]));
  if (different !== undefined) return `they differ in ${different}`;
  if (text(objectIn(record.evidence).sha256) !== text(document.evidence_sha256)) return "they differ in evidence";
  const { settlements_on_chain: logged } = document;
  if (logged !== undefined && text(settlementsOf(record)) !== text(logged)) return "they differ in settlements";
  const checks = Array.isArray(record.checks) ? record.checks.map(objectIn) : [];
  const outcomes = Object.fromEntries(checks.map(({ check, outcome }) => [String(check), outcome ?? null]));
  return text(outcomes) === text(document.checks) ? null : "they differ in checks";
}

const settlementsOf = ({ settlements }: JsonObject): Json =>
  (Array.isArray(settlements) ? settlements.map(objectIn) : []).map((one) => ({
    transaction: one.transaction ?? null,
    block: one.block ?? null,
    from: one.from ?? null,
    to: one.to ?? null,
    value: one.value ?? null,
  }));

const reasonOf = (record: JsonObject): Json | undefined => objectIn(record.correction).reason;

const text = (value: Json | undefined): string => (value === undefined ? "" : jcs(exact(value)));

/**
 * Returns JSON as a log's documents contain it: any number other than a safe integer as its text, because programs may
 * parse it differently. A payer can choose times that large.
 */
export function exact(value: Json): Json {
  // JSON can contain minus zero, but a signed document cannot.
  if (typeof value === "number") return Number.isSafeInteger(value) ? value + 0 : JSON.stringify(value);
  if (Array.isArray(value)) return value.map(exact);
  if (!isObject(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([name, part]) => [name, exact(part)]));
}
