import { type Hex, type LocalAccount, sha256 } from "viem";
import { type Answer, post, send } from "../payments/requests.ts";
import type { Held } from "./contract.ts";

/** What a merchant's server answered its buyer. */
export interface Delivered {
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string | string[]>>;
  readonly body: string | Uint8Array;
}

/** The merchant's signature, made from nothing but the document the service publishes. */
export async function signDelivery(
  { url }: { readonly url: string },
  merchant: LocalAccount,
  { id, status = 200, body }: Pick<Held, "id"> & Delivered,
): Promise<Hex> {
  const { forward } = (await send(`${url}/escrow`)).body as { forward: Parameters<LocalAccount["signTypedData"]>[0] };
  const { domain, types, primaryType } = forward;
  const message = { paymentId: id, status, bodySha256: sha256(Buffer.from(body)) };
  return merchant.signTypedData({ domain, types, primaryType, message } as never);
}

export const JSON_TYPE = { "content-type": "application/json" };
export const GOOD = { status: 200, headers: JSON_TYPE, body: '{"haiku":"An old silent pond"}' } as const;
export const EMPTY = { status: 200, headers: JSON_TYPE, body: "" } as const;

/** What is posted to `/escrow/verify`, before it becomes text. */
export function forwarded({ status = 200, headers = JSON_TYPE, body }: Delivered) {
  const content = typeof body === "string" ? { body } : { body_base64: Buffer.from(body).toString("base64") };
  return { response: { status, headers, ...content } };
}

export const verify = ({ url }: { readonly url: string }, body: object, path = "/escrow/verify"): Promise<Answer> =>
  post(`${url}${path}`, JSON_TYPE, JSON.stringify(body));

/** Forwards a signed delivery like a merchant's server. */
export async function deliver(
  service: { readonly url: string },
  merchant: LocalAccount,
  { id, ...delivered }: Pick<Held, "id"> & Delivered,
): Promise<Answer> {
  const signature = await signDelivery(service, merchant, { id, ...delivered });
  return verify(service, { payment_id: id, ...forwarded(delivered), signature });
}

/** A response whose type and coding are part of what the merchant signs. */
export interface Sent {
  readonly status?: number;
  readonly contentType?: string;
  readonly contentEncoding?: string;
  readonly body: string | Uint8Array;
}

export const headersOf = ({ contentType, contentEncoding }: Sent) => ({
  ...(contentType === undefined ? {} : { "content-type": contentType }),
  ...(contentEncoding === undefined ? {} : { "content-encoding": contentEncoding }),
});

/** Signs one response in version 2, by the published types, and forwards it, or another. */
export async function deliverVersion2(
  service: { readonly url: string },
  merchant: LocalAccount,
  { id, signed, sent = signed }: Pick<Held, "id"> & { readonly signed: Sent; readonly sent?: Sent },
): Promise<Answer> {
  const { forward } = (await send(`${service.url}/escrow`)).body as {
    forward: { domain: object; version_2: Parameters<LocalAccount["signTypedData"]>[0] };
  };
  const { types, primaryType } = forward.version_2;
  const { status = 200, contentType = "", contentEncoding = "", body } = signed;
  const message = { paymentId: id, status, bodySha256: sha256(Buffer.from(body)), contentType, contentEncoding };
  const signature = await merchant.signTypedData({ domain: forward.domain, types, primaryType, message } as never);
  const { status: sentStatus = 200, body: sentBody } = sent;
  const response = forwarded({ status: sentStatus, headers: headersOf(sent), body: sentBody });
  return verify(service, { payment_id: id, ...response, signature, delivery_version: 2 });
}
