import type { HttpBindings } from "@hono/node-server";
import { type Context, Hono, type MiddlewareHandler } from "hono";
import { cors } from "hono/cors";
import { routePath } from "hono/route";
import type pg from "pg";
import type { Logger } from "pino";
import { elapsedMs } from "../clock.ts";
import { isAway } from "../db/connection.ts";
import type { Meter } from "../metrics/meter.ts";
import { POLICY_BESIDE_TERMS, page, pageWith, wantsHtml } from "../page/page.ts";
import { FAILED, type TracedSpan, traced } from "../telemetry/tracing.ts";
import { EVERY_ANSWER, PROBLEMS, Problem, problemBody, problemOf } from "./errors.ts";
import { inRequest, type Peers } from "./peers.ts";
import { createRateLimit, LIMIT_SECONDS } from "./rate-limit.ts";
import { checkQuery, clientOf, refuseDeclaredLength } from "./request.ts";
import {
  isPaid,
  isQuoted,
  mountPath,
  networksOfSignIn,
  type PaidRoute,
  type Picture,
  type Route,
  suffixOf,
} from "./route.ts";

/** The page of a problem or of a 402, which is not a problem. */
type PageOfProblem = Omit<ReturnType<typeof problemBody>, "code" | "type" | "status" | "title"> & {
  readonly status: number;
  readonly title: string;
  readonly code?: string;
};

type Handler = (c: Context) => Response | Promise<Response>;

export interface AppParts {
  readonly routes: readonly Route[];
  /** Sells a paid route; serves a free one. */
  readonly handlerOf: (route: Route) => Handler;
  /** Renders the page of an error, or of terms to pay, for browsers. `sold` is the product at the page's path. */
  readonly renderProblem: (problem: PageOfProblem, sold: PaidRoute | null) => string;
  /** Requests per minute per client address; 0 for no limit. */
  readonly rateLimitPerMinute: number;
  /** Has the counts of busy clients in all processes. */
  readonly pool: pg.Pool;
  readonly peers: Peers;
  readonly log: Pick<Logger, "warn" | "error">;
  /** Receives one line per request; lines may be lost if the process is killed. */
  readonly accessLog: Pick<Logger, "debug" | "info">;
  /** Null if metrics are off. */
  readonly meter: Pick<Meter, "request"> | null;
}

type Env = { Bindings: Partial<HttpBindings>; Variables: { requestId: string } };

/** Creates the HTTP application, which only mounts the routes of the table and answers errors as problem details. */
export function createApp(parts: AppParts): Hono<Env> {
  const app = new Hono<Env>();
  const answer = answersOf(parts);
  app.use(everyRequest(parts));
  // The library's middleware sets headers on a finished response, at the cost of a second response object, so only
  // preflights use it. It allows any header that the preflight requests, because requests have no cookies.
  app.options("*", privateNetwork, cors({ origin: "*", maxAge: 86_400 }));
  if (parts.rateLimitPerMinute > 0) app.use(rateLimit(parts));
  app.use(plainPath);
  app.use(lengthLimit(bodyLimits(parts.routes)));
  for (const route of parts.routes) app.on(route.method, mountPath(route), mounted(route, handled(route, parts)));
  for (const [path, methods] of allowed(parts.routes)) {
    const allow = [...methods, "OPTIONS"].join(", ");
    app.all(path, (c) => {
      if (methods.includes(c.req.method)) return c.notFound();
      throw new Problem("method_not_allowed", {
        detail: `This path does not support that method; it allows ${allow}.`,
        headers: { allow },
      });
    });
  }
  app.notFound((c) =>
    answer(c, new Problem("not_found", { detail: `Nothing exists at ${c.req.path.slice(0, 200)}.` })),
  );
  app.onError((error, c) => {
    const problem = problemOf(error, isAway);
    const facts = { err: error, request_id: c.get("requestId") };
    if (problem.code === "internal_error") parts.log.error(facts, "a request failed");
    else if (problem !== error) parts.log.warn(facts, "a request found a part of the service away");
    return answer(c, problem);
  });
  return app;
}

/**
 * Chromium asks whether a public page may call a private address, such as a service's behind a company's proxy.
 */
const privateNetwork: MiddlewareHandler<Env> = async (c, next) => {
  if (c.req.header("access-control-request-private-network") === "true")
    setHeader(c, "access-control-allow-private-network", "true");
  await next();
};

/** Paths of the log are exact (C2SP tlog-tiles), so another spelling is not a resource. */
const IS_EXACT = /^\/+log(\/|$)|\.tlog-proof\/?$/;

/** Redirects a path with superfluous slashes to the plain path, with the same method, body, and query. */
const plainPath: MiddlewareHandler<Env> = async (c, next) => {
  if (!/[\\/]{2}|.[\\/]$/.test(c.req.path) || IS_EXACT.test(c.req.path)) return next();
  // The parsed URL starts with one slash and names no other host.
  const { pathname, search } = new URL(c.req.url);
  const plain = pathname.replace(/\/{2,}/g, "/").replace(/(?<=.)\/$/, "");
  return plain === pathname ? next() : c.redirect(plain + search, 308);
};

/** Skips a request whose path does not end like the route's, and refuses an ambiguous or malformed query. */
function mounted(route: Route, handle: (c: Context) => Response | Promise<Response>): MiddlewareHandler<Env> {
  const suffix = suffixOf(route);
  const handler: MiddlewareHandler<Env> = async (c, next) => {
    if (suffix !== undefined && !c.req.path.endsWith(suffix)) return next();
    checkQuery(c.req.url, route);
    return handle(c);
  };
  return Object.assign(handler, { tablePath: route.path });
}

/** Returns the paid route at a path. */
const soldAt = (routes: readonly Route[], path: string): PaidRoute | null =>
  routes.find((route): route is PaidRoute => isPaid(route) && route.path === path) ?? null;

/**
 * Returns a route's handler. For a 402, a browser gets a page in place of the JSON, with the same headers and thus the
 * same terms.
 */
function handled(route: Route, { handlerOf, renderProblem }: Pick<AppParts, "handlerOf" | "renderProblem">): Handler {
  const handle = handlerOf(route);
  if (!isPaid(route) && !isQuoted(route) && networksOfSignIn(route).length === 0) return handle;
  return async (c) => {
    const answer = await handle(c);
    if (answer.status !== 402 || !wantsHtml(c)) return answer;
    const { error } = (await answer.clone().json()) as { readonly error: string };
    const problem = { status: 402, title: "Payment required", detail: error, request_id: c.get("requestId") };
    const markup = renderProblem(problem, isPaid(route) ? route : null);
    const shown = pageWith(c, markup, { status: 402, policy: POLICY_BESIDE_TERMS });
    for (const [name, value] of answer.headers)
      if (!/^content-/.test(name) && name !== "vary") shown.headers.set(name, value);
    return shown;
  };
}

/** Returns the methods of every mounted path. */
function allowed(routes: readonly Route[]): Map<string, readonly string[]> {
  const methods = new Map<string, readonly string[]>();
  for (const route of routes) {
    const known = methods.get(mountPath(route)) ?? [];
    const own = route.method === "GET" ? ["GET", "HEAD"] : [route.method];
    methods.set(mountPath(route), [...new Set([...known, ...own])]);
  }
  return methods;
}

/** Returns the maximum body size of each path that differs from the default. */
const bodyLimits = (routes: readonly Route[]): ReadonlyMap<string, number> =>
  new Map(
    routes.flatMap((route) =>
      "maxBodyBytes" in route && route.maxBodyBytes ? [[route.path, route.maxBodyBytes] as const] : [],
    ),
  );

function answersOf({ renderProblem, routes }: Pick<AppParts, "renderProblem" | "routes">) {
  const pictureAt = picturesOf(routes);
  return (c: Context<Env>, { code, details }: Problem): Response => {
    const body = problemBody(code, details, c.get("requestId"));
    const { status } = PROBLEMS[code];
    const isRead = c.req.method === "GET" || c.req.method === "HEAD";
    const shown = isRead ? pictureAt(c.req.path)?.(status === 404 ? "missing" : "unavailable") : undefined;
    if (shown !== undefined) return placeholder(c, shown, { status, ...details });
    if (wantsHtml(c)) {
      const shownTo = page(c, renderProblem(body, soldAt(routes, c.req.path)), status);
      for (const [name, value] of Object.entries(details.headers ?? {})) shownTo.headers.set(name, value);
      shownTo.headers.set("cache-control", "no-store");
      return shownTo;
    }
    return c.body(JSON.stringify(body), status, {
      "content-type": "application/problem+json",
      "cache-control": "no-store",
      ...details.headers,
    });
  };
}

/**
 * Returns the placeholders of the picture routes by path, because a request that is refused early has not reached a
 * route.
 */
function picturesOf(routes: readonly Route[]) {
  const pictures = routes.flatMap((route) =>
    "placeholder" in route && route.placeholder !== undefined
      ? [{ pattern: pathPattern(route), placeholder: route.placeholder }]
      : [],
  );
  return (path: string) => pictures.find(({ pattern }) => pattern.test(path))?.placeholder;
}

const pathPattern = ({ path }: Route): RegExp =>
  new RegExp(`^${path.replaceAll(".", "\\.").replace(/:\w+/g, "[^/]+")}$`);

/**
 * The lifetime of a placeholder. Image proxies pass on only status 200 and cache it, so a temporary error must expire
 * soon.
 */
const PLACEHOLDER_SECONDS = 60;

function placeholder(
  c: Context<Env>,
  { type, content }: Picture,
  { status, headers }: { readonly status: number; readonly headers?: Readonly<Record<string, string>> },
): Response {
  const body = typeof content === "string" ? content : new Uint8Array(content);
  return c.body(body, status === 404 ? 404 : 200, {
    ...headers,
    "content-type": type,
    "cache-control": `public, max-age=${PLACEHOLDER_SECONDS}`,
  });
}

/** Sets a header on Node's response, because Hono would create a Headers object for every response. */
function setHeader(c: Context<Env>, name: string, value: string): void {
  const { outgoing } = c.env ?? {};
  if (outgoing) outgoing.setHeader(name, value);
  else c.header(name, value);
}

/**
 * Gives every request an id, the common headers, and one log line without headers, query, or body. Successful reads are
 * logged at debug level only.
 */
function everyRequest({ accessLog: log, meter, peers }: AppParts) {
  return async (c: Context<Env>, next: () => Promise<void>): Promise<void> => {
    const start = elapsedMs();
    const { incoming } = c.env ?? {};
    const request_id = (incoming && peers.requestIdOf(incoming)) ?? crypto.randomUUID();
    c.set("requestId", request_id);
    for (const [name, value] of EVERY_ANSWER) setHeader(c, name, value);
    setHeader(c, "x-request-id", request_id);
    await traced("request", { kind: "server", attributes: { "trust.request_id": request_id } }, async (span) => {
      await inRequest(request_id, next);
      if (span !== null) describe(span, c);
    });
    const { method, path } = c.req;
    const { status } = c.res;
    const ms = elapsedMs() - start;
    meter?.request({ method, route: routeOf(c), status, seconds: ms / 1000 });
    const facts = { method, path: path.slice(0, 200), status, ms: Math.round(ms), request_id };
    if (method === "GET" && status < 400) log.debug(facts, "request");
    else log.info(facts, "request");
  };
}

/** Describes the span by the route's pattern, because a path may contain a token, and a method may be any word. */
function describe(span: TracedSpan, c: Context): void {
  const method = c.req.method in TRACED_METHODS ? c.req.method : "_OTHER";
  const [route, { status }] = [routeOf(c), c.res];
  span.updateName(`${method} ${route}`);
  span.setAttribute("http.request.method", method);
  span.setAttribute("http.route", route);
  span.setAttribute("http.response.status_code", status);
  if (status >= 500) span.setStatus({ code: FAILED });
}

const TRACED_METHODS = { GET: true, HEAD: true, POST: true, OPTIONS: true };

const EVERY_PATH = "/*";

/** The pattern of the route that answered, `none` if there is no route, `refused` if the request never reached it. */
function routeOf(c: Context): string {
  const answered = routePath(c);
  if (answered !== EVERY_PATH) return answered;
  return c.req.method === "OPTIONS" || routePath(c, -1) === EVERY_PATH ? "none" : "refused";
}

function lengthLimit(limits: ReadonlyMap<string, number>) {
  return (c: Context, next: () => Promise<void>): Promise<void> => {
    refuseDeclaredLength(c, limits.get(c.req.path));
    return next();
  };
}

/** The headers of draft-ietf-httpapi-ratelimit-headers: the policy and the remaining quota. */
function rateLimit({ rateLimitPerMinute, pool, peers }: AppParts) {
  const use = createRateLimit(pool, rateLimitPerMinute);
  const policy = `"address";q=${rateLimitPerMinute};w=${LIMIT_SECONDS}`;
  return async (c: Context<Env>, next: () => Promise<void>): Promise<void> => {
    const { left, seconds, isOver } = await use(clientOf(c, peers));
    setHeader(c, "ratelimit-policy", policy);
    setHeader(c, "ratelimit", `"address";r=${left};t=${seconds}`);
    if (isOver)
      throw new Problem("too_many_requests", {
        detail: `One address may send at most ${rateLimitPerMinute} requests per minute.`,
        headers: { "retry-after": String(seconds) },
      });
    await next();
  };
}
