import { VERSION } from "../platform/about.ts";
import { json, jsonOrPage } from "../platform/http/answer.ts";
import type { Route } from "../platform/http/route.ts";
import { page, wantsHtml } from "../platform/page/page.ts";
import type { Probes } from "./probes.ts";
import { HEALTH, STATUS } from "./schemas.ts";
import { recentStatus, statusDocument } from "./status.ts";
import { renderStatus } from "./status-page.ts";

export interface StatusRouteParts {
  readonly probes: Probes;
  readonly now: () => Date;
}

export function statusRoutes({ probes, now }: StatusRouteParts): readonly Route[] {
  const recent = recentStatus(probes, now);
  return [
    {
      method: "GET",
      path: "/health",
      summary: "Liveness check",
      output: json(HEALTH),
      handle: (c) => c.json({ ok: true, version: VERSION }, 200, { "cache-control": "no-store" }),
    },
    {
      method: "GET",
      path: "/status",
      summary: "Status and lag of every part of the service",
      output: jsonOrPage(STATUS),
      async handle(c) {
        const status = await recent();
        c.header("cache-control", "no-store");
        return wantsHtml(c) ? page(c, renderStatus(status)) : c.json(statusDocument(status), 200, { vary: "Accept" });
      },
    },
  ];
}
