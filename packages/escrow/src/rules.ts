import { type Delivery, headerOf } from "./delivery.ts";
import type { Decision } from "./forward.ts";

/** The input of the rules. */
export interface Content {
  /** HTTP status. */
  readonly status: number;
  /** The content type as sent; null if unknown. */
  readonly contentType: string | null;
  /** Decoded; null if that failed. */
  readonly body: Uint8Array | null;
}

export interface Rule {
  readonly id: string;
  readonly decision: Decision;
  readonly when: string;
  /**
   * Whether it counts for or against the merchant. A buyer can make any merchant refuse its input, so such a refund,
   * like one by timeout, leaves no record on the chain and does not count against the merchant.
   */
  readonly counts: boolean;
  readonly applies: (content: Content) => boolean;
}

/** JSON as defined by the WHATWG's MIME Sniffing Standard; a missing or blank type counts as JSON. */
const isJson = ({ contentType }: Content): boolean =>
  /^(?:\s*|(?:application|text)\/json|[^\s/;,]+\/[^\s/;,]+\+json)$/i.test(contentType?.split(/[;,]/)[0]?.trim() ?? "");

function parsed({ body }: Content): { readonly value: unknown } | null {
  try {
    if (body === null) return null;
    return { value: JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(body)) };
  } catch {
    return null;
  }
}

/**
 * Returns whether a response reports its own failure: `error`, a non-empty `errors`, or `success: false` at the top
 * level.
 */
function saysError(value: unknown): boolean {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return false;
  const { error, errors, success } = value as Record<string, unknown>;
  const isSet = (part: unknown) =>
    part !== undefined && part !== null && part !== false && part !== "" && !(Array.isArray(part) && part.length === 0);
  return isSet(error) || isSet(errors) || success === false;
}

const isBlank = ({ body }: Content): boolean => body !== null && /^\s*$/.test(new TextDecoder().decode(body));

/** In order: the first that applies decides. */
export const RULES: readonly Rule[] = [
  {
    id: "refused_input",
    decision: "refund",
    when: "The merchant answered 400 or 422: it refused the buyer's input. This does not count in its record.",
    counts: false,
    applies: ({ status }) => status === 400 || status === 422,
  },
  {
    id: "error_status",
    decision: "refund",
    when: "The merchant answered with a status of 400 or more.",
    counts: true,
    applies: ({ status }) => status >= 400,
  },
  {
    id: "undecodable",
    decision: "refund",
    when: "The body cannot be decoded: a content coding other than gzip, deflate, br and zstd, more than two codings, corrupt data, or more than 4 MiB when decoded.",
    counts: true,
    applies: ({ body }) => body === null,
  },
  {
    id: "empty_response",
    decision: "refund",
    when: "The body is empty, or nothing but white space.",
    counts: true,
    applies: isBlank,
  },
  {
    id: "malformed_json",
    decision: "refund",
    when: "The body is not valid JSON in UTF-8, and its content type is JSON or not stated.",
    counts: true,
    applies: (content) => isJson(content) && parsed(content) === null,
  },
  {
    id: "error_payload",
    decision: "refund",
    when: "The body is a JSON object with `error` or `errors` that is set, or with `success: false`, at its top level.",
    counts: true,
    applies: (content) => isJson(content) && saysError(parsed(content)?.value),
  },
  {
    id: "delivered",
    decision: "release",
    when: "The merchant delivered: no rule for a refund applies.",
    counts: true,
    applies: () => true,
  },
];

/** Returns the rule that decides a delivery. Deterministic: the same content always gets the same rule. */
export function evaluate(content: Content): Rule {
  const rule = RULES.find(({ applies }) => applies(content));
  if (rule === undefined) throw new Error("the last rule applies to everything");
  return rule;
}

/** Returns the rule that decides a delivery; null if its body has a content coding, which only the arbiter decodes. */
export function ruleOf(delivery: Delivery): Rule | null {
  if (!/^\s*(identity)?\s*$/i.test(headerOf(delivery, "content-encoding"))) return null;
  const { status, body } = delivery;
  return evaluate({ status, contentType: headerOf(delivery, "content-type") || null, body });
}
