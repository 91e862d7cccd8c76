import { proofPath } from "./log-paths.ts";
import type { LogPlace } from "./log-place.ts";

/** Where a header can be added to an answer. */
interface Answering {
  header(name: string, value: string, options?: { readonly append?: boolean }): void;
}

/** The relation (RFC 8288) of a record to the proof that it is in the log. */
const RELATION = "https://c2sp.org/tlog-proof";

/** Links a record, whose bytes never change, to its proofs, each with its index: in headers, beside the bytes. */
export function linkProof(c: Answering, places: readonly LogPlace[]): void {
  for (const place of places)
    c.header("link", `<${proofPath(place)}>; rel="${RELATION}"; index="${place.index}"`, { append: true });
}
