import { VERSION } from "../platform/about.ts";
import { json, jsonOrPage } from "../platform/http/answer.ts";
import { Problem } from "../platform/http/errors.ts";
import type { Route } from "../platform/http/route.ts";
import { page, wantsHtml } from "../platform/page/page.ts";
import type { Probes } from "./probes.ts";
import { HEALTH, READY, STATUS } from "./schemas.ts";
import { recentStatus } from "./status.ts";
import { renderStatus } from "./status-page.ts";

export interface StatusRouteParts {
  readonly probes: Probes;
  readonly now: () => Date;
  readonly isReady: () => boolean;
}

const STOPPING = "This process is stopping. It still answers, but send new requests to another one.";

export function statusRoutes({ probes, now, isReady }: StatusRouteParts): readonly Route[] {
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
      path: "/ready",
      summary: "Whether this process takes new requests: 503 once it is stopping",
      output: json(READY),
      problems: ["not_available"],
      handle(c) {
        if (!isReady()) throw new Problem("not_available", { detail: STOPPING, headers: { "retry-after": "1" } });
        return c.json({ ok: true }, 200, { "cache-control": "no-store" });
      },
    },
    {
      method: "GET",
      path: "/status",
      summary: "Status and lag of every part of the service",
      output: jsonOrPage(STATUS),
      async handle(c) {
        const status = await recent();
        c.header("cache-control", "no-store");
        return wantsHtml(c) ? page(c, renderStatus(status)) : c.json(status, 200, { vary: "Accept" });
      },
    },
  ];
}
