import { InputError } from "../../refusal.ts";
import { isObject, type Json } from "../../strict-json.ts";
import { list, matching, nullable, object, oneOf, text } from "../parsers.ts";
import type { Statement } from "../v1/parse-facts.ts";
import { parseScoreFacts as parseV3 } from "../v3/parse-facts.ts";
import type { ScoreFacts, SellerExam } from "./facts.ts";

const isTime = (value: string): boolean =>
  /^\d{4}-/.test(value) && !Number.isNaN(Date.parse(value)) && new Date(value).toISOString() === value;
const time = text(isTime, "a UTC time like 2026-11-25T09:30:00.000Z");
const isNormalized = (value: string): boolean =>
  URL.canParse(value) && new URL(value).href === value && /^https?:/.test(value);

const exams = list(
  object<SellerExam>({
    id: matching(/^[0-9a-f]{32}$/, "32 hex digits"),
    url: text(isNormalized, "a normalized http or https URL"),
    origin: text((value) => isNormalized(`${value}/`) && new URL(value).origin === value, "an origin of http or https"),
    result: oneOf("pass", "fail"),
    level: nullable(oneOf("full", "safe")),
    control: oneOf("file", "signature"),
    issued_at: time,
    valid_until: time,
  }),
  { identity: ({ result }) => result },
);

/**
 * The facts of a score from untrusted JSON: exactly the members of `ScoreFacts`, none missing, none added, and no two
 * that contradict each other.
 * @throws InputError that names the place, like `inputs.seller_exams[0].origin`
 */
export function parseScoreFacts(value: Json | undefined, path = "inputs"): ScoreFacts {
  if (!isObject(value)) return { ...parseV3(value, path), seller_exams: [] };
  const { seller_exams, ...known } = value;
  const complete = { ...parseV3(known as Json, path), seller_exams: exams(seller_exams, `${path}.seller_exams`) };
  for (const [holds, where, expected] of complete.seller_exams.flatMap(statements))
    if (!holds) throw new InputError(`${path}.${where}: expected ${expected}`);
  return complete;
}

const statements = (
  { result, level, control, issued_at, valid_until }: SellerExam,
  index: number,
): readonly Statement[] => {
  const where = `seller_exams[${index}]`;
  return [
    [(level === null) === (result === "fail"), `${where}.level`, "null with a FAIL, and only with one"],
    [result === "pass" || control === "signature", `${where}.control`, "the wallet's signature, with a FAIL"],
    [issued_at < valid_until, `${where}.valid_until`, "a time after issued_at"],
  ];
};
