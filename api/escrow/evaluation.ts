/** The version of what a merchant signs for a delivery; it also decides by which rules the delivery is evaluated. */
export type DeliveryVersion = 1 | 2 | 3;

/** What a merchant's server answered its buyer, as the merchant forwards it. */
export interface Delivery {
  readonly version: DeliveryVersion;
  /** HTTP status. */
  readonly status: number;
  /** The content type it was sent with; null if unknown. Version 1 does not sign it. */
  readonly contentType: string | null;
  /** `Content-Encoding` as sent; null if it was absent. Version 1 neither signs nor decodes it. */
  readonly contentEncoding: string | null;
  /** As sent: from version 2 on in its content coding. */
  readonly body: Uint8Array;
  /** What the payer may contest, as the merchant states it; null but in version 3. */
  readonly contest: StatedContest | null;
}

/** The terms of a contest as they are forwarded, with what the payer's salt was made of. */
export interface StatedContest {
  readonly seconds: number;
  /** By category; as submitted. */
  readonly conditions: Readonly<Record<string, unknown>>;
  readonly saltNonce: bigint;
}

/** What the rules look at. */
export interface Content extends Pick<Delivery, "status" | "contentType"> {
  /** Decoded; null if that failed. */
  readonly body: Uint8Array | null;
}

export type Decision = "release" | "refund";

export interface Rule {
  readonly id: string;
  readonly decision: Decision;
  readonly when: string;
  /**
   * Whether it says something about the merchant. A buyer can make any merchant refuse its input, so such a refund is
   * carried out without a record on the chain, like one by the clock, and does not count against the merchant.
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

/** An answer that reports its own failure: `error`, a non-empty `errors`, or `success: false` at the top level. */
function saysError(value: unknown): boolean {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return false;
  const { error, errors, success } = value as Record<string, unknown>;
  const isSet = (part: unknown) =>
    part !== undefined && part !== null && part !== false && part !== "" && !(Array.isArray(part) && part.length === 0);
  return isSet(error) || isSet(errors) || success === false;
}

const isBlank = ({ body }: Content): boolean => body !== null && /^\s*$/.test(new TextDecoder().decode(body));

const ERROR_STATUS: Rule = {
  id: "error_status",
  decision: "refund",
  when: "The merchant answered with a status of 400 or more.",
  counts: true,
  applies: ({ status }) => status >= 400,
};

const REFUSED_INPUT: Rule = {
  id: "refused_input",
  decision: "refund",
  when: "The merchant answered 400 or 422: it refused the buyer's input. This does not count in its record.",
  counts: false,
  applies: ({ status }) => status === 400 || status === 422,
};

const UNDECODABLE: Rule = {
  id: "undecodable",
  decision: "refund",
  when: "The body cannot be decoded: a content coding other than gzip, deflate, br and zstd, more than two codings, corrupt data, or more than 4 MiB when decoded.",
  counts: true,
  applies: ({ body }) => body === null,
};

const CONTENT: readonly Rule[] = [
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

/** The rules of each version, in order: the first that applies decides. */
export const RULES: Readonly<Record<DeliveryVersion, readonly Rule[]>> = {
  1: [ERROR_STATUS, ...CONTENT],
  2: [REFUSED_INPUT, ERROR_STATUS, UNDECODABLE, ...CONTENT],
  3: [REFUSED_INPUT, ERROR_STATUS, UNDECODABLE, ...CONTENT],
};

/** The rule that decides a delivery. Deterministic: within one version, the same content always gets the same rule. */
export function evaluate(version: DeliveryVersion, content: Content): Rule {
  const rule = RULES[version].find(({ applies }) => applies(content));
  if (rule === undefined) throw new Error("the last rule applies to everything");
  return rule;
}
