import type { Context } from "hono";
import { CONTENT_SECURITY_POLICY } from "./page.ts";

/** HTML for browsers, which ask for it by name; JSON for everyone else, and for `?format=json`. */
export const wantsHtml = (c: Context): boolean =>
  (c.req.header("accept") ?? "").includes("text/html") && c.req.query("format") !== "json";

/** A page with its security headers. */
export const page = (c: Context, markup: string, status: 200 | 404 | 503 = 200): Response =>
  pageWith(c, markup, { status, policy: CONTENT_SECURITY_POLICY });

/** A page with its own content security policy. */
export function pageWith(
  c: Context,
  markup: string,
  { status = 200, policy }: { readonly status?: 200 | 404 | 503; readonly policy: string },
): Response {
  return c.body(markup, status, {
    "content-type": "text/html; charset=utf-8",
    "content-security-policy": policy,
    "referrer-policy": "strict-origin-when-cross-origin",
    vary: "Accept",
  });
}
