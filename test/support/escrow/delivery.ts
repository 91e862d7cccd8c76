import { type Address, type Hex, type LocalAccount, sha256, zeroHash } from "viem";
import { type Answer, post, send } from "../payments/requests.ts";
import type { Held } from "./contract.ts";

/** A merchant's response to its buyer. */
export interface Delivered {
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string | string[]>>;
  readonly body: string | Uint8Array;
}

const headerIn = (headers: NonNullable<Delivered["headers"]>, wanted: string) =>
  Object.entries(headers).find(([name]) => name.toLowerCase() === wanted)?.[1] ?? "";

/** Signs a delivery as the merchant, using only the service's published document, or for another contract. */
export async function signDelivery(
  { url }: { readonly url: string },
  merchant: LocalAccount,
  {
    id,
    contract,
    status = 200,
    headers = JSON_TYPE,
    body,
  }: Pick<Held, "id"> & Delivered & { readonly contract?: Address },
): Promise<Hex> {
  const { forward } = (await send(`${url}/escrow`)).body as { forward: Parameters<LocalAccount["signTypedData"]>[0] };
  const { types, primaryType } = forward;
  const domain = { ...forward.domain, ...(contract && { verifyingContract: contract }) };
  const message = {
    paymentId: id,
    status,
    bodySha256: sha256(Buffer.from(body)),
    contentType: headerIn(headers, "content-type"),
    contentEncoding: headerIn(headers, "content-encoding"),
    contestSeconds: 0,
    conditionsSha256: zeroHash,
  };
  return merchant.signTypedData({ domain, types, primaryType, message } as never);
}

export const JSON_TYPE = { "content-type": "application/json" };
export const GOOD = { status: 200, headers: JSON_TYPE, body: '{"haiku":"An old silent pond"}' } as const;
export const EMPTY = { status: 200, headers: JSON_TYPE, body: "" } as const;

/** The body of `POST /escrow/verify`, before it is serialized. */
export function forwarded({ status = 200, headers = JSON_TYPE, body }: Delivered) {
  const content = typeof body === "string" ? { body } : { body_base64: Buffer.from(body).toString("base64") };
  return { response: { status, headers, ...content } };
}

export const verify = ({ url }: { readonly url: string }, body: object, path = "/escrow/verify"): Promise<Answer> =>
  post(`${url}${path}`, JSON_TYPE, JSON.stringify(body));

/** Signs one response like a merchant's server, and forwards the same one or another. */
export async function deliver(
  service: { readonly url: string },
  merchant: LocalAccount,
  { id, sent, ...signed }: Pick<Held, "id"> & Delivered & { readonly sent?: Delivered },
): Promise<Answer> {
  const signature = await signDelivery(service, merchant, { id, ...signed });
  return verify(service, { payment_id: id, ...forwarded(sent ?? signed), signature, delivery_version: 1 });
}

/** A response with the two headers that the merchant signs. */
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
