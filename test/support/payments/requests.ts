import { decodePaymentRequiredHeader } from "@x402/core/http";
import type { PaymentRequired } from "@x402/core/types";
import { BASE, type Signed, witnessed } from "./signing.ts";

/** A response with its body as text and, if it is JSON, parsed. */
export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  readonly body: Record<string, unknown>;
}

export const encode = (payload: unknown): string => Buffer.from(JSON.stringify(payload)).toString("base64");

const wire = ({ authorization: { from, to, value, validAfter, validBefore, nonce }, signature }: Signed) => ({
  signature,
  authorization: {
    from,
    to,
    value: String(value),
    validAfter: String(validAfter),
    validBefore: String(validBefore),
    nonce,
  },
});

export const acceptedOf = ({ authorization }: Signed) => ({
  scheme: "exact",
  network: BASE.id as string,
  amount: String(authorization.value),
  asset: BASE.usdc.address as string,
  payTo: authorization.to as string,
  maxTimeoutSeconds: 120,
  extra: { name: BASE.usdc.name, version: "2" },
});

/**
 * The headers of a version 2 payment. `accepted` overrides the terms that the client claims, and `id` is its payment
 * identifier.
 */
export function v2(
  signed: Signed,
  { accepted = {}, id }: { accepted?: Partial<ReturnType<typeof acceptedOf>>; id?: unknown } = {},
): Record<string, string> {
  const extensions = id === undefined ? {} : { "payment-identifier": { info: { required: false, id } } };
  return {
    "PAYMENT-SIGNATURE": encode({
      x402Version: 2,
      accepted: { ...acceptedOf(signed), ...accepted },
      payload: wire(signed),
      extensions,
    }),
  };
}

/** The headers of a version 1 payment. */
export const v1 = (signed: Signed, network = "base"): Record<string, string> => ({
  "X-PAYMENT": encode({ x402Version: 1, scheme: "exact", network, payload: wire(signed) }),
});

export async function send(url: string, init: RequestInit = {}): Promise<Answer> {
  const response = await fetch(url, { redirect: "error", ...init });
  const text = await response.text();
  witnessed.answers.push(text, JSON.stringify([...response.headers]));
  return {
    status: response.status,
    headers: response.headers,
    text,
    body: text.startsWith("{") ? (JSON.parse(text) as Answer["body"]) : {},
  };
}

export const post = (url: string, headers: Record<string, string> = {}, body: string | null = null): Promise<Answer> =>
  send(url, { method: "POST", headers, body });

/** The version 2 challenge of a 402. */
export const challengeOf = (answer: Answer): PaymentRequired =>
  decodePaymentRequiredHeader(answer.headers.get("payment-required") ?? "");
