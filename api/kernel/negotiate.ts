import type { Context } from "hono";
import { CONTENT_SECURITY_POLICY } from "./page.ts";

/** HTML for browsers, which name it; JSON for everybody else, and for anyone who asks with `?format=json`. */
export const wantsHtml = (c: Context): boolean =>
  c.req.query("format") !== "json" && (c.req.header("accept") ?? "").includes("text/html");

/** A page with the headers that keep it safe. */
export function page(c: Context, markup: string, status: 200 | 404 | 503 = 200): Response {
  return c.body(markup, status, {
    "content-type": "text/html; charset=utf-8",
    "content-security-policy": CONTENT_SECURITY_POLICY,
    "referrer-policy": "strict-origin-when-cross-origin",
    vary: "Accept",
  });
}
