import { createHash, createHmac } from "node:crypto";
import { z } from "zod";
import { namedRoute } from "../../packages/seller-check/src/exam/other-routes.ts";
import type { PaymentKey } from "../platform/http/route.ts";
import { formatUsd } from "../platform/money.ts";
import type { Network } from "../platform/networks.ts";
import type { Address } from "../platform/wallet.ts";
import { claimFault, type GuardSettings, type TargetFault } from "../platform/web/target.ts";
import { SELLER_CEILING } from "./products.ts";
import type { Consent, ExaminedRequest } from "./record.ts";

/** The reasons for which an exam is refused. A refused exam is not charged. */
export const REFUSALS = {
  not_public: "the address is not a public one that an exam may visit",
  own_service: "we do not examine ourselves",
  not_paid: "the seller does not answer an unpaid request with a valid 402",
  not_payable:
    "the 402 offers nothing that an exam can pay: USDC on our main network under the scheme exact or auth-capture",
  too_dear: "the seller asks for more than the ceiling or than max_price",
  bad_consent: "no line of the origin's file lets this wallet buy an exam of the request",
} as const;

export type RefusalCode = keyof typeof REFUSALS;

export interface Refusal {
  readonly code: RefusalCode;
  readonly detail: string;
}

/** The terms fixed when an exam is ordered. Payments on other terms are never signed. JSON, for the journal. */
export interface Settled {
  readonly origin: string;
  readonly payTo: Address;
  /** In atomic units. */
  readonly amount: string;
  readonly consent: Consent;
}

/** A request for an exam: JSON, so that the journal can store it. */
export interface ExamRequest extends ExaminedRequest {
  /** Another URL of the same origin, or null if none was named. */
  readonly other: string | null;
  /** In atomic units. */
  readonly maxPrice: string;
  /** Null until the intake has looked at the seller. */
  readonly settled: Settled | null;
}

export interface RequestSettings extends GuardSettings {
  /** The public URL of this service, which exams never visit. */
  readonly baseUrl: string;
}

/** An unpaid request with any other method could do more than request a quote. */
export const METHODS = ["GET", "POST"] as const;
const MOST_URL = 2_048;
const MOST_BODY = 8_192;

const FAULTS: Readonly<Record<TargetFault, string>> = {
  scheme: "expected an http or https URL",
  credentials: "the URL has credentials in it",
  port: "only the ports 80 and 443 are visited",
  name: "the name does not belong to the public Internet",
  address: "the address does not belong to the public Internet",
  own_host: REFUSALS.own_service,
};

/** Returns what is wrong with the URL itself, before anything is requested. */
export function urlRefusal(text: string, settings: RequestSettings): Refusal | null {
  const url = parseTarget(text);
  if (url === null) return { code: "not_public", detail: "expected an absolute URL" };
  if (url.host === new URL(settings.baseUrl).host) return { code: "own_service", detail: REFUSALS.own_service };
  const fault = claimFault(url, settings);
  if (fault === null) return null;
  return { code: fault === "own_host" ? "own_service" : "not_public", detail: FAULTS[fault] };
}

/** Parses a URL and drops its fragment, which is never sent. Returns null if it is not a URL. */
function parseTarget(text: string): URL | null {
  if (!URL.canParse(text)) return null;
  const url = new URL(text);
  url.hash = "";
  return url;
}

const price = z
  .string()
  .regex(/^\d{1,4}(\.\d{1,6})?$/, "expected an amount of USDC, like 0.05")
  .transform((text) => atomic(text));

/** Converts without floats, so the result is exact. */
function atomic(text: string): bigint {
  const [whole = "0", fraction = ""] = text.split(".");
  return BigInt(whole) * 1_000_000n + BigInt(fraction.padEnd(6, "0"));
}

const body = z.strictObject({
  url: z.string().min(1).max(MOST_URL).describe("The paid endpoint."),
  method: z.enum(METHODS).optional().describe("GET, or POST if there is a body."),
  body: z.string().max(MOST_BODY).optional().describe("A body that the endpoint sells a result for."),
  content_type: z
    .string()
    .max(100)
    .regex(/^[\w.+-]+\/[\w.+-]+(; ?[\w-]+=[\w.-]+)?$/, "expected a media type")
    .optional(),
  other: z
    .string()
    .min(1)
    .max(MOST_URL)
    .optional()
    .describe("Another paid URL of the same origin, or its path: a payment for `url` must not buy it."),
  max_price: price.optional().describe(`The most that one payment may cost; at most ${formatUsd(SELLER_CEILING)}.`),
});

/** The body as documented to callers. */
export const EXAM_BODY = z.object({ ...body.shape, max_price: z.string().optional() });

/** The body of `POST /test/seller`. Only its form is checked. */
export const EXAM_REQUEST: z.ZodType<ExamRequest> = body.transform((given, issues): ExamRequest => {
  const sent = given.body ?? null;
  const method = given.method ?? (sent === null ? "GET" : "POST");
  if (method === "GET" && sent !== null)
    issues.addIssue({ code: "custom", path: ["body"], message: "a GET has no body" });
  const url = parseTarget(given.url);
  const most = given.max_price ?? SELLER_CEILING;
  const isLower = most < SELLER_CEILING;
  const request = { method, body: sent, contentType: given.content_type ?? "application/json" };
  const other = given.other === undefined || url === null ? null : otherOf(given.other, { url: url.href, ...request });
  if (typeof other === "object" && other !== null)
    issues.addIssue({ code: "custom", path: ["other"], message: other.refused });
  return {
    url: url?.href ?? given.url,
    ...request,
    other: typeof other === "string" ? other : null,
    maxPrice: `${isLower ? most : SELLER_CEILING}`,
    settled: null,
  };
});

/** Returns the other URL, which must be at the origin of `url`, because an exam may visit only that. */
function otherOf(text: string, resource: ExaminedRequest): string | { readonly refused: string } {
  const route = namedRoute(text, resource);
  return typeof route === "string" ? { refused: `it ${route}` } : route.url;
}

/** Returns a refusal in one line, starting with its code. */
export const worded = ({ code, detail }: Refusal): string => `${code}: ${detail}`;

/** Returns the SHA-256 that identifies an examined request and the network it is paid on. */
export const requestKey = ({ url, method, body: sent, contentType }: ExaminedRequest, network: Network): Buffer =>
  createHash("sha256")
    .update(JSON.stringify([network, url, method, sent, contentType]))
    .digest();

/**
 * Returns 32 hex digits derived from the authorization that bought an exam or a rehearsal, so that a sale yields one,
 * however often it runs. The secret keeps others from deriving the ID from the public authorization, because one that is
 * not published can be found only by its ID.
 */
export const orderId = (
  bought: "exam" | "rehearsal",
  { network, asset, payer, nonce }: PaymentKey,
  secret: Uint8Array,
): string =>
  createHmac("sha256", secret)
    .update(`seller ${bought}|${network}|${asset}|${payer}|${nonce}`)
    .digest("hex")
    .slice(0, 32);

/** Returns the path of an exam's record. */
export const examPath = (id: string): string => `/exam/${id}`;
