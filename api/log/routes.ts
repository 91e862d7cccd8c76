import type { Context } from "hono";
import { z } from "zod";
import { ENTRY_TYPES } from "../../packages/verifier/src/tlog/entry-types.ts";
import { inPath, jsonOrPage, optionalInQuery } from "../platform/http/answer.ts";
import { Problem } from "../platform/http/errors.ts";
import type { FreeRoute, Route } from "../platform/http/route.ts";
import { page, wantsHtml } from "../platform/page/page.ts";
import { ENTRY_MEANINGS, entryDocument, logOverview } from "./log-overview.ts";
import { renderEntry, renderLog } from "./log-page.ts";
import { LOG_PATH, logOrigin, logPath, PROOF_SUFFIX } from "./log-paths.ts";
import type { LogPlace } from "./log-section.ts";
import { PROVES, sendProof } from "./proof-routes.ts";
import { generationsOf, type PublicLog } from "./prove-entries.ts";
import { LOG, LOG_ENTRY } from "./schemas.ts";
import { staticRoutes } from "./static-routes.ts";

export interface LogRouteParts {
  readonly publicLog: PublicLog;
  readonly baseUrl: string;
}

const NEWEST = 10;
const MOST_ID = 80;
/** Parses a canonical decimal that is a safe integer. */
const wholeNumber = (text: string): number | null =>
  /^(0|[1-9]\d{0,15})$/.test(text) && Number.isSafeInteger(Number(text)) ? Number(text) : null;

/** The public routes of the log, in the formats of C2SP and as pages. */
export const logRoutes = (parts: LogRouteParts): readonly Route[] => [
  {
    method: "GET",
    path: LOG_PATH,
    summary: "The transparency log: size, root, witnesses, policy, and a search by record id",
    parameters: [
      optionalInQuery({
        name: "id",
        description: "A record's id, or an index of the log. Returns the entries about it.",
        schema: z.string().max(MOST_ID),
      }),
    ],
    output: jsonOrPage(LOG),
    problems: ["malformed_request"],
    handle: (c) => overview(c, parts),
  },
  ...generationsOf(parts.publicLog).flatMap((generation) => [
    ...staticRoutes(generation, parts.publicLog),
    entryProofRoute(generation, parts),
    entryRoute(generation, parts),
  ]),
];

const INDEX = { name: "index", description: "The entry's index, from 0.", schema: z.int().min(0) };

const entryRoute = (generation: number, parts: LogRouteParts): FreeRoute => ({
  method: "GET",
  path: `${logPath(generation)}/entry/:index`,
  summary: "An entry of the log, with its record and its witnesses",
  parameters: [inPath(INDEX)],
  output: jsonOrPage(LOG_ENTRY),
  problems: ["not_found"],
  async handle(c) {
    const place = await found(c.req.param("index") ?? "", generation, parts);
    const document = entryDocument(place, parts.baseUrl);
    return wantsHtml(c)
      ? page(c, renderEntry(document, ENTRY_MEANINGS[place.type]))
      : c.json(document, 200, { vary: "Accept" });
  },
});

const entryProofRoute = (generation: number, parts: LogRouteParts): FreeRoute => ({
  method: "GET",
  path: `${logPath(generation)}/entry/:index${PROOF_SUFFIX}`,
  summary: "Proof that an entry of any type is in the log (C2SP tlog-proof)",
  parameters: [inPath(INDEX)],
  ...PROVES,
  async handle(c) {
    const entry = await found((c.req.param("index") ?? "").slice(0, -PROOF_SUFFIX.length), generation, parts);
    return sendProof(c, parts.publicLog, { entry, newest: entry });
  },
});

async function found(text: string, generation: number, { publicLog }: LogRouteParts): Promise<LogPlace> {
  const index = wholeNumber(text);
  const place = index === null ? null : await publicLog.places.at(generation, index);
  if (place === null)
    throw new Problem("not_found", {
      detail: `The log has no entry ${text.slice(0, 40)}; entries are numbered from 0, without leading zeros.`,
    });
  return place;
}

async function overview(c: Context, { publicLog, baseUrl }: LogRouteParts): Promise<Response> {
  const { store, checkpoints, places, generation } = publicLog;
  const id = c.req.query("id")?.trim();
  if (id !== undefined && id.length > MOST_ID)
    throw new Problem("malformed_request", {
      detail: `The query parameter id must have at most ${MOST_ID} characters.`,
    });
  const [generations, checkpoint, witnesses, hits] = await Promise.all([
    store.generations(),
    checkpoints.served(generation),
    checkpoints.witnesses(generation),
    id === undefined || id === "" ? null : search(id, generation, places),
  ]);
  const begun = generations.find((one) => one.generation === generation);
  const shown = begun ?? { generation, origin: logOrigin(baseUrl, generation), vkey: null };
  const newest = await newestEntries(publicLog, generation, checkpoint?.size ?? 0);
  const document = logOverview({
    shown,
    generations,
    checkpoint,
    witnesses,
    quorum: checkpoints.quorum,
    newest,
    search: hits === null || id === undefined ? null : { id, found: hits },
    baseUrl,
  });
  c.header("cache-control", "no-cache");
  return wantsHtml(c) ? page(c, renderLog(document, baseUrl)) : c.json(document, 200, { vary: "Accept" });
}

/** The characters of a record's id. PostgreSQL text cannot contain U+0000. */
const ID = /^[\x21-\x7e]+$/;

/** Finds the entries about a record, or the one with this index. Ids are lower case, except the ids of keys. */
async function search(id: string, generation: number, places: PublicLog["places"]): Promise<readonly LogPlace[]> {
  const index = wholeNumber(id);
  const refs = ID.test(id) ? [...new Set([id, id.toLowerCase()])] : [];
  const [found, at] = await Promise.all([
    Promise.all(refs.map((ref) => places.of(ref, ENTRY_TYPES))),
    index === null ? null : places.at(generation, index),
  ]);
  const about = found.flat();
  return at === null || about.some((one) => one.index === at.index && one.generation === generation)
    ? about
    : [...about, at];
}

async function newestEntries({ store }: PublicLog, generation: number, size: number) {
  const indexes = Array.from({ length: Math.min(NEWEST, size) }, (_, place) => size - 1 - place);
  const entries = await Promise.all(indexes.map((index) => store.at(generation, index)));
  return entries.filter((entry) => entry !== null);
}
