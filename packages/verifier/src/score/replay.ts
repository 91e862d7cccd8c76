import { InputError, parseInput, quote } from "../refusal.ts";
import { isObject, type Json, type JsonObject, parseStrictJson } from "../strict-json.ts";
import { SCORE_VERSION } from "./bands.ts";
import { parseScoreFacts } from "./parse-facts.ts";
import type { ScoreDocument } from "./record.ts";
import { scoreDocument } from "./score.ts";

export interface Replay {
  /** Whether the document is exactly the one that follows from its facts, including their hash. */
  readonly same: boolean;
  readonly differences: readonly Difference[];
  /** The document that follows from the facts. */
  readonly computed: ScoreDocument;
}

/** A location where the document differs, such as `components.payments.points`; undefined on the side that lacks it. */
export interface Difference {
  readonly path: string;
  readonly stated: Json | undefined;
  readonly computed: Json | undefined;
}

/**
 * Recomputes score documents from the facts they carry: one document, or the list of a batch. Nothing is fetched; to
 * check the facts, look at the certificates and transactions that they name.
 * @throws InputError if the text is not a score document
 */
export async function replayScores(source: string | Uint8Array): Promise<readonly Replay[]> {
  const json = parseInput(
    () => parseStrictJson(source),
    (reason) => reason,
  );
  if (!Array.isArray(json)) return [await replay(json, "")];
  if (json.length === 0) throw new InputError("The list contains no score documents.");
  return Promise.all(json.map((document: Json, index) => replay(document, `[${index}].`)));
}

/** `place` prefixes the paths in error messages. */
async function replay(document: Json, place: string): Promise<Replay> {
  if (!isObject(document) || !Object.hasOwn(document, "inputs"))
    throw new InputError(`${place}inputs is missing; expected a score document, which carries its facts.`);
  const { score_version, inputs } = document;
  if (score_version !== SCORE_VERSION)
    throw new InputError(`${place}score_version is ${quote(score_version)}; expected ${SCORE_VERSION}.`);
  const computed = await scoreDocument(parseScoreFacts(inputs, `${place}inputs`));
  const differences = differencesBetween(document, asJson(computed), "");
  return { same: differences.length === 0, differences, computed };
}

/** TypeScript gives interfaces no index signature, even if all their members are JSON. */
const asJson = (document: ScoreDocument): JsonObject => document as unknown as JsonObject;

/** Compares objects member by member; list items are either equal or different. */
function differencesBetween(stated: Json | undefined, computed: Json | undefined, path: string): readonly Difference[] {
  if (isObject(stated) && isObject(computed)) {
    const names = new Set([...Object.keys(computed), ...Object.keys(stated)]);
    const inside = (name: string) => (path === "" ? name : `${path}.${name}`);
    return [...names].flatMap((name) => differencesBetween(own(stated, name), own(computed, name), inside(name)));
  }
  if (Array.isArray(stated) && Array.isArray(computed)) {
    const places = Array.from({ length: Math.max(stated.length, computed.length) }, (_, index) => index);
    return places
      .map((index) => ({ path: `${path}[${index}]`, stated: stated[index], computed: computed[index] }))
      .filter((item) => differencesBetween(item.stated, item.computed, "").length > 0);
  }
  return stated === computed ? [] : [{ path, stated, computed }];
}

const own = (object: JsonObject, name: string): Json | undefined =>
  Object.hasOwn(object, name) ? object[name] : undefined;
