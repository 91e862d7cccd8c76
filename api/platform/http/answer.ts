import { createHash } from "node:crypto";
import type { z } from "zod";
import type { Statement, Transaction } from "../db/connection.ts";

/** An answer that is stored, sent, and replayed byte for byte. */
export interface StoredAnswer {
  readonly status: number;
  /** JSON text in UTF-8. */
  readonly body: Uint8Array;
  /** Path of the public record the sale created, if any. */
  readonly location: string | null;
}

/** A sale whose answer depends on data that its transaction reads. */
export interface TransactedCompletion {
  /** It may run again after a failure. Only a committed run counts. */
  readonly complete: (transaction: Transaction) => Promise<StoredAnswer>;
}

/** A sale whose answer is known before anything is stored. */
export interface KnownCompletion {
  readonly answer: StoredAnswer;
  /** The writes that are stored with it. */
  readonly writes: readonly Statement[];
}

/**
 * The completion of a sale. The transaction that marks the payment as fulfilled stores it, so the records, the answer,
 * and the payment are stored together or not at all.
 */
export type Completion = KnownCompletion | TransactedCompletion;

/** The answer to a payment that is withheld, and the records stored with it. */
export interface RecordedAnswer {
  readonly answer: StoredAnswer;
  readonly record: (transaction: Transaction) => Promise<void>;
}

/** Wraps a document as an answer. */
export const jsonAnswer = (
  document: unknown,
  { status = 200, location = null }: { readonly status?: number; readonly location?: string | null } = {},
): StoredAnswer => ({ status, body: Buffer.from(JSON.stringify(document)), location });

/** Completes a sale with an answer that is already known, and the writes that are stored with it. */
export const answered = (answer: StoredAnswer, writes: readonly Statement[] = []): Completion => ({ answer, writes });

/** Returns a strong tag: 128 bits of the body's SHA-256, and the body's content coding if it has several. */
export const etagOf = (body: string | Uint8Array, coding = ""): string =>
  `"${createHash("sha256").update(body).digest("base64url").slice(0, 22)}${coding}"`;

/** Whether an `If-None-Match` header matches the tag, using weak comparison (RFC 9110, section 13.1.2). */
export const isHeld = (condition: string | undefined, etag: string): boolean =>
  (condition ?? "").split(",").some((tag) => ["*", etag].includes(tag.trim().replace(/^W\//, "")));

/** The output of a route: its media types, with a schema for JSON and null for any other type. */
export type Output = Readonly<Record<string, z.ZodType | null>>;

/** An output of JSON. */
export const json = (schema: z.ZodType): Output => ({ "application/json": schema });

/** An output of JSON, or of an HTML page for browsers. */
export const jsonOrPage = (schema: z.ZodType): Output => ({ "application/json": schema, "text/html": null });

/** A path or query parameter. Path parameters are always required. */
export interface Parameter {
  readonly name: string;
  readonly in: "path" | "query";
  readonly description: string;
  readonly required: boolean;
  readonly schema: z.ZodType;
}

type Named = Pick<Parameter, "name" | "description" | "schema">;

export const inPath = (parameter: Named): Parameter => ({ ...parameter, in: "path", required: true });
export const inQuery = (parameter: Named): Parameter => ({ ...parameter, in: "query", required: true });
export const optionalInQuery = (parameter: Named): Parameter => ({ ...parameter, in: "query", required: false });
