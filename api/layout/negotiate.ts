import type { Context } from "hono";
import { CONTENT_SECURITY_POLICY } from "./page.ts";

/** HTML for browsers, which name it; JSON for everybody else, and for anyone who asks with `?format=json`. */
export const wantsHtml = (c: Context): boolean =>
  c.req.query("format") !== "json" && (c.req.header("accept") ?? "").includes("text/html");

/** A page with the headers that keep it safe. */
export const page = (c: Context, markup: string, status: 200 | 404 | 503 = 200): Response =>
  pageWith(c, markup, { status, policy: CONTENT_SECURITY_POLICY });

/** A page with a content security policy of its own. */
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
