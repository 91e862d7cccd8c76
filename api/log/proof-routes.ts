import type { Context } from "hono";
import { z } from "zod";
import type { EntryType } from "../../packages/verifier/src/tlog/entry-types.ts";
import { inPath, optionalInQuery } from "../platform/http/answer.ts";
import { Problem } from "../platform/http/errors.ts";
import type { FreeRoute, Route } from "../platform/http/route.ts";
import {
  CERTIFICATE_ENTRIES,
  EVALUATION_ENTRIES,
  PROOF_SUFFIX,
  proofPath,
  type RecordKind,
  VERDICT_ENTRIES,
} from "./log-paths.ts";
import type { PublicLog } from "./prove-entries.ts";
import { entryType } from "./schemas.ts";
import { sendText } from "./static-routes.ts";
import type { LoggedEntry } from "./store.ts";

/** Returns whether a record with this id exists, logged or not. */
export type RecordExists = (ref: string) => Promise<boolean>;

export interface ProofRouteParts {
  readonly publicLog: PublicLog;
  readonly exists: {
    readonly certificate: RecordExists;
    readonly verdict: RecordExists;
    /** The id is the payment's. */
    readonly evaluation: RecordExists;
  };
}

interface Provable {
  readonly kind: RecordKind;
  /** Its name in a sentence, with the article. */
  readonly what: string;
  readonly id: RegExp;
  readonly exists: RecordExists;
}

/** The proof routes. They are mounted before the records' own routes, whose paths they share. */
export function proofRoutes({ publicLog, exists }: ProofRouteParts): readonly Route[] {
  const provable: readonly Provable[] = [
    { kind: CERTIFICATE_ENTRIES, what: "a certificate", id: /^([0-9a-f]{16}){1,2}$/, exists: exists.certificate },
    { kind: VERDICT_ENTRIES, what: "a verdict", id: /^[0-9a-f]{32}$/, exists: exists.verdict },
    { kind: EVALUATION_ENTRIES, what: "an escrow evaluation", id: /^0x[0-9a-f]{64}$/, exists: exists.evaluation },
  ];
  return provable.map((one) => proofRoute(one, publicLog));
}

export const PROVES = {
  output: { "text/plain": null },
  others: { 304: {} },
  problems: ["malformed_request", "not_found", "not_available"],
} as const satisfies Pick<FreeRoute, "output" | "others" | "problems">;

function proofRoute(provable: Provable, publicLog: PublicLog): FreeRoute {
  const { kind, what, id } = provable;
  const [, name = ""] = /:(\w+)$/.exec(kind.route) ?? [];
  return {
    method: "GET",
    path: `${kind.route}${PROOF_SUFFIX}`,
    summary: `Proof that ${what} is in the log (C2SP tlog-proof): entry, path, cosigned checkpoint`,
    parameters: [
      inPath({ name, description: "The record's id.", schema: z.string().regex(id) }),
      optionalInQuery({
        name: "type",
        description: `The type of the entry: ${kind.types.join(", ")}. Default: the record's first entry.`,
        schema: entryType.extract([...kind.types]),
      }),
    ],
    ...PROVES,
    handle: (c) => proof(c, name, { ...provable, publicLog }),
  };
}

async function proof(
  c: Context,
  name: string,
  parts: Provable & Pick<ProofRouteParts, "publicLog">,
): Promise<Response> {
  const { kind, what, id, exists, publicLog } = parts;
  const ref = (c.req.param(name) ?? "").slice(0, -PROOF_SUFFIX.length).toLowerCase();
  const types = typesIn(c, kind);
  const entries = id.test(ref) ? await publicLog.store.findAll(ref, kind.types) : [];
  const entry = entries.find(({ type }) => types.includes(type));
  if (entry !== undefined) return sendProof(c, publicLog, { entry, newest: entries.at(-1) ?? entry });
  if (!id.test(ref) || !(await exists(ref)))
    throw new Problem("not_found", {
      detail: `There is no record ${ref.slice(0, 80)}, so there is no proof of ${what}.`,
    });
  const isAwaited = entries.length === 0 && types.some((type) => kind.first.includes(type));
  throw isAwaited ? NOT_YET : new Problem("not_found", { detail: noneOf(types) });
}

/** The entry types that the request asks for. */
function typesIn(c: Context, { types, first }: RecordKind): readonly EntryType[] {
  const asked = c.req.query("type");
  if (asked === undefined) return first;
  const type = types.find((one) => one === asked);
  if (type === undefined)
    throw new Problem("malformed_request", { detail: `The query parameter type must be one of ${types.join(", ")}.` });
  return [type];
}

const noneOf = (types: readonly EntryType[]): string =>
  `The log has no entry of type ${types.join(" or ")} about this record. A new entry is in the log within seconds.`;

const NOT_YET = new Problem("not_available", {
  detail:
    "This record is not in the log yet. It is logged within a second or two, so retry then. If this persists, see GET /status.",
  headers: { "retry-after": "1" },
});

/** A proof changes with every checkpoint, so caches must revalidate. */
const ASKED_AGAIN = "no-cache";

/** Sends the proof of an entry, with a link to the proof of the record's newest entry. */
export async function sendProof(
  c: Context,
  { prove }: Pick<PublicLog, "prove">,
  { entry, newest }: { readonly entry: LoggedEntry; readonly newest: LoggedEntry },
): Promise<Response> {
  const text = await prove(entry);
  c.header("link", `<${proofPath(newest)}>; rel="latest-version"`);
  return sendText(c, text, ASKED_AGAIN);
}
