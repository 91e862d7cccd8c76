import { createHash } from "node:crypto";
import type { Consent, ExaminedRequest, ExamOrder } from "./record.ts";

const sha256 = (text: string): string => createHash("sha256").update(text).digest("hex");

/** A URL in public: without its query, which is its buyer's text. */
export function bareUrl(url: string): { readonly url: string; readonly querySha256: string | null } {
  const [bare = url] = url.split("?", 1);
  return { url: bare, querySha256: bare === url ? null : sha256(url.slice(bare.length + 1)) };
}

/** A body in public: its digest alone. */
export const bodySha256 = (body: string | null): string | null => (body === null ? null : sha256(body));

/** An examined request in public. */
export function requestDocument(order: ExaminedRequest & Pick<ExamOrder, "other">) {
  const { method, url, body, contentType, other } = order;
  const asked = bareUrl(url);
  return {
    method,
    url: asked.url,
    query_sha256: asked.querySha256,
    body_sha256: bodySha256(body),
    content_type: contentType,
    other: other === null ? null : bareUrl(other).url,
  };
}

/** The origin's line in public. */
export const consentDocument = ({ prefix, ...line }: Consent) => ({
  kind: "file" as const,
  ...line,
  path_prefix: prefix,
});
