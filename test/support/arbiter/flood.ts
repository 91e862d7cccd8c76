import { FETCH_LIMITS_V1 } from "../../../api/arbiter/policy/v1/tables.ts";
import { createGuardedFetch } from "../../../api/platform/web/guarded-fetch/fetch.ts";

/**
 * Runs in a separate process: makes 64 simultaneous fetches, cycling through the given paths of a local server, and
 * prints how much its memory grew, in MiB, and how the attempts ended. Arguments: origin, deadline in milliseconds,
 * paths.
 */
const [, , origin = "", deadlineMs = "", ...paths] = process.argv;
const fetcher = createGuardedFetch({
  ownHost: "trust.example",
  allowedOrigins: [origin],
  userAgent: "test",
  deadlineMs: Number(deadlineMs),
});
const attempt = (path = "/") =>
  fetcher.attempt(
    { url: `${origin}${path}`, expectStatus: null, contains: "never there", limits: FETCH_LIMITS_V1 },
    new AbortController().signal,
  );
await attempt();
const before = process.memoryUsage.rss();
let most = before;
const watch = setInterval(() => {
  most = Math.max(most, process.memoryUsage.rss());
}, 20);
const ended = await Promise.all(Array.from({ length: 64 }, (_, index) => attempt(paths[index % paths.length])));
clearInterval(watch);
const failures = [...new Set(ended.map(({ failure }) => failure))];
console.log(JSON.stringify({ grownMiB: Math.round((most - before) / 2 ** 20), failures }));
