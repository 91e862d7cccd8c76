/** What a merchant's server answered its buyer, as the merchant forwards it. */
export interface Delivery {
  /** HTTP status. */
  readonly status: number;
  /** The content type it was sent with; null if unknown. */
  readonly contentType: string | null;
  readonly body: Uint8Array;
}

export type Decision = "release" | "refund";

export interface Rule {
  readonly id: string;
  readonly decision: Decision;
  readonly when: string;
  readonly applies: (delivery: Delivery) => boolean;
}

export const EVALUATION_VERSION = 1;

/** JSON as defined by the WHATWG's MIME Sniffing Standard; a missing or blank type counts as JSON. */
const isJson = ({ contentType }: Delivery): boolean =>
  /^(?:\s*|(?:application|text)\/json|[^\s/;,]+\/[^\s/;,]+\+json)$/i.test(contentType?.split(/[;,]/)[0]?.trim() ?? "");

function parsed({ body }: Delivery): { readonly value: unknown } | null {
  try {
    return { value: JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(body)) };
  } catch {
    return null;
  }
}

/** An answer that reports its own failure: `error`, a non-empty `errors`, or `success: false` at the top level. */
function saysError(value: unknown): boolean {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return false;
  const { error, errors, success } = value as Record<string, unknown>;
  const isSet = (part: unknown) =>
    part !== undefined && part !== null && part !== false && part !== "" && !(Array.isArray(part) && part.length === 0);
  return isSet(error) || isSet(errors) || success === false;
}

const isBlank = ({ body }: Delivery): boolean => /^\s*$/.test(new TextDecoder().decode(body));

/** The rules of version 1, in order: the first that applies decides. */
export const RULES: readonly Rule[] = [
  {
    id: "error_status",
    decision: "refund",
    when: "The merchant answered with a status of 400 or more.",
    applies: ({ status }) => status >= 400,
  },
  {
    id: "empty_response",
    decision: "refund",
    when: "The body is empty, or nothing but white space.",
    applies: isBlank,
  },
  {
    id: "malformed_json",
    decision: "refund",
    when: "The body is not valid JSON in UTF-8, and its content type is JSON or not stated.",
    applies: (delivery) => isJson(delivery) && parsed(delivery) === null,
  },
  {
    id: "error_payload",
    decision: "refund",
    when: "The body is a JSON object with `error` or `errors` that is set, or with `success: false`, at its top level.",
    applies: (delivery) => isJson(delivery) && saysError(parsed(delivery)?.value),
  },
  {
    id: "delivered",
    decision: "release",
    when: "The merchant delivered: no rule for a refund applies.",
    applies: () => true,
  },
];

/** The rule that decides a delivery. Deterministic: within one version, the same delivery always gets the same rule. */
export function evaluate(delivery: Delivery): Rule {
  const rule = RULES.find(({ applies }) => applies(delivery));
  if (rule === undefined) throw new Error("the last rule applies to everything");
  return rule;
}
