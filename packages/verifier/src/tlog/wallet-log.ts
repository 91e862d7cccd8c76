import { quote } from "../refusal.ts";
import { isObject, type Json, type JsonObject } from "../strict-json.ts";
import { type AnyEntry, isKnown } from "./entry.ts";

/**
 * Tests whose FAIL does not count against the wallet. A stock client signs the lifetime that a 402 requests, and a
 * signature does not show whose 402 that was: a shop can quote the suite's price to our address with a long timeout and
 * forward the payment.
 */
export const UNATTRIBUTED_FAILS: readonly string[] = ["suite"];

/** A monitor's note on an entry about a certificate. */
export type Noted =
  | {
      readonly type: "certificate";
      readonly index: number;
      readonly id: string;
      readonly wallet: string;
      readonly product: string;
      readonly verdict: string;
      readonly issued_at: string;
      readonly valid_until: string;
    }
  | { readonly type: "reversal"; readonly index: number; readonly id: string }
  /** An entry of a type that the monitor did not know, which may be about any wallet. */
  | { readonly type: "unknown"; readonly index: number; readonly id: string; readonly entry_type: string };

/** The log's facts about one certificate. */
export type LoggedCertificate = Omit<Extract<Noted, { type: "certificate" }>, "type"> & {
  /** The index of the entry that reversed it, or null. */
  readonly reversed: number | null;
};

/** Returns the note on a genuine entry, or null if it is known not to be about a certificate. */
export function noteOf(entry: AnyEntry, document: JsonObject): Noted | null {
  const { type, index, id } = entry;
  if (!isKnown(entry)) return { type: "unknown", index, id, entry_type: type };
  if (type === "reversal") return { type, index, id };
  if (type !== "certificate") return null;
  const { wallet, product, verdict, issued_at, valid_until } = document;
  const text = (value: Json | undefined): string => (typeof value === "string" ? value : "");
  return {
    type,
    index,
    id,
    wallet: text(wallet).toLowerCase(),
    product: text(product),
    verdict: text(verdict),
    issued_at: text(issued_at),
    valid_until: text(valid_until),
  };
}

/** A wallet's entries. */
export interface WalletEntries {
  /** In the order of the log. */
  readonly certificates: readonly LoggedCertificate[];
  /** Entries of types that the monitor did not know. */
  readonly unknown: readonly { readonly index: number; readonly entry_type: string }[];
}

export async function entriesOf(wallet: string, notes: AsyncIterable<Noted> | Iterable<Noted>): Promise<WalletEntries> {
  const own: Extract<Noted, { type: "certificate" }>[] = [];
  const reversals = new Map<string, number>();
  const unknown: WalletEntries["unknown"][number][] = [];
  for await (const note of notes) {
    if (note.type === "reversal") reversals.set(note.id, note.index);
    else if (note.type === "unknown") unknown.push({ index: note.index, entry_type: note.entry_type });
    else if (note.wallet === wallet.toLowerCase()) own.push(note);
  }
  const certificates = own.map(({ type: _, ...certificate }) => ({
    ...certificate,
    reversed: reversals.get(certificate.id) ?? null,
  }));
  return { certificates, unknown };
}

const counts = ({ product, verdict, valid_until, reversed }: LoggedCertificate, at: Date): boolean =>
  reversed === null &&
  // A time that cannot be parsed has not passed.
  !(Date.parse(valid_until) <= at.getTime()) &&
  (verdict === "pass" || !UNATTRIBUTED_FAILS.includes(product));

/** The contents of a wallet's verification record (`certs`) or credential (`conformance`). */
export interface WalletRecord {
  readonly wallet: string;
  readonly isVerified: boolean;
  readonly listed: readonly JsonObject[];
}

/**
 * Returns the contradictions between a record and the log: a FAIL that counts but is not listed, or despite which the
 * wallet is called verified; a different result; a reversed certificate that still counts in the list; or one that is
 * listed twice. A PASS may be missing, because the list is limited in length.
 */
export function hiddenBy(
  { listed, isVerified }: Pick<WalletRecord, "listed" | "isVerified">,
  logged: readonly LoggedCertificate[],
  at: Date,
): readonly string[] {
  return logged.flatMap((one) => {
    const { id, index, product, verdict, reversed } = one;
    const [shown, ...more] = listed.filter((entry) => entry.id === id);
    const name = `${quote(product)} ${quote(verdict)}, certificate ${quote(id)}, entry ${index}`;
    const isAgainst = verdict !== "pass" && counts(one, at);
    if (shown === undefined) return isAgainst ? [`${name} is omitted`] : [];
    if (more.length > 0) return [`${name} is listed ${more.length + 1} times`];
    if (shown.result !== verdict) return [`${name} is listed as ${quote(shown.result)}`];
    if (isAgainst && isVerified) return [`${name} counts, but the wallet is called verified`];
    return shown.fresh === true && reversed !== null
      ? [`${name} counts in the record, but entry ${reversed} reversed it`]
      : [];
  });
}

/** Returns the contents of a record; null if it is not a verification record or a credential. */
export function listIn(record: Json): WalletRecord | null {
  if (!isObject(record)) return null;
  const { credentialSubject } = record;
  const subject = isObject(credentialSubject) ? credentialSubject : record;
  const { wallet, verified } = subject;
  const list = subject.conformance ?? subject.certs;
  if (typeof wallet !== "string" || !Array.isArray(list)) return null;
  return { wallet, isVerified: verified === true, listed: (list as readonly Json[]).filter(isObject) };
}
