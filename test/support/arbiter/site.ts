import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { createServer as createTlsServer } from "node:https";
import { type AddressInfo, connect, type Server, Socket } from "node:net";
import { claimSchema } from "../../../api/arbiter/claim.ts";
import { type CheckRuns, type Evidence, NO_TRANSACTIONS } from "../../../api/arbiter/evidence.ts";
import { gatherEvidence } from "../../../api/arbiter/gather-evidence.ts";
import { POLICY_VERSIONS } from "../../../api/arbiter/policy/index.ts";
import type { PolicyVersions } from "../../../api/arbiter/policy/version.ts";
import type { Dial } from "../../../api/platform/web/guarded-fetch/dial.ts";
import { createGuardedFetch, type GuardedFetchOptions } from "../../../api/platform/web/guarded-fetch/fetch.ts";
import type { Fetcher } from "../../../api/platform/web/guarded-fetch/request.ts";
import { GOOD, TEST_CA } from "./certificates.ts";

export type Handler = (request: IncomingMessage, response: ServerResponse) => void;

/** A public address the tests' names resolve to. Nothing is ever sent there: `site.dial` leads to the local servers. */
export const PUBLIC_ADDRESS = "93.184.216.34";
const OWN_HOST = "trust.example";
const OWN_ADDRESS = "93.184.216.99";
/** What every test tells the guard about the service. */
const SETTINGS = { ownHost: OWN_HOST, allowedOrigins: [] } as const;

/** The settings the arbiter accepts claims by. */
export const CLAIMS = { ...SETTINGS, policies: POLICY_VERSIONS, now: () => new Date() };

export interface Site {
  readonly handlers: Map<string, Handler>;
  /** Path and host of every request that arrived. */
  readonly requests: { readonly path: string; readonly host: string; readonly headers: IncomingMessage["headers"] }[];
  /** Every connection requested, `address:port`. */
  readonly dialled: string[];
  readonly dial: Dial;
  readonly port: number;
  fetcher(options?: Partial<GuardedFetchOptions>): Fetcher;
  close(): void;
}

const listening = (server: Server): Promise<number> =>
  new Promise((resolve) => server.listen(0, "127.0.0.1", () => resolve((server.address() as AddressInfo).port)));

/** A connection that is never answered. */
function refusedSocket(): Socket {
  const socket = new Socket();
  process.nextTick(() => socket.destroy(Object.assign(new Error("refused by the test"), { code: "ECONNREFUSED" })));
  return socket;
}

/** Resolves the tests' names; an unknown name has no address. */
const resolveTestName = async (name: string): Promise<readonly string[]> => {
  if (name === OWN_HOST) return [OWN_ADDRESS];
  return name === "shop.example" || name === "cdn.example" ? [PUBLIC_ADDRESS] : [];
};

/**
 * Local servers for HTTP and HTTPS that a fetcher reaches under public names, at a public address, on ports 80 and 443.
 */
export async function startSite(certificate: { readonly cert: string; readonly key: string } = GOOD): Promise<Site> {
  const handlers = new Map<string, Handler>();
  const requests: Site["requests"] = [];
  const dialled: string[] = [];
  const sockets = new Set<Socket>();
  const answer: Handler = (request, response) => {
    const path = new URL(request.url ?? "/", "http://site").pathname;
    requests.push({ path: request.url ?? "/", host: request.headers.host ?? "", headers: request.headers });
    const handler = handlers.get(path);
    if (handler) handler(request, response);
    else response.writeHead(404).end("no such thing");
  };
  const servers = [createServer(answer), createTlsServer(certificate, answer)];
  for (const server of servers) server.on("connection", (socket: Socket) => sockets.add(socket));
  const [http = 0, https = 0] = await Promise.all(servers.map(listening));
  const dial: Dial = (address, port) => {
    dialled.push(`${address}:${port}`);
    if (address !== PUBLIC_ADDRESS) return refusedSocket();
    return connect({ host: "127.0.0.1", port: port === 443 ? https : http });
  };
  return {
    handlers,
    requests,
    dialled,
    dial,
    port: http,
    fetcher: (options = {}) =>
      createGuardedFetch({
        ...SETTINGS,
        userAgent: "test",
        resolve: resolveTestName,
        dial,
        ca: TEST_CA,
        ownAddresses: () => [],
        ...options,
      }),
    close() {
      for (const server of servers) server.close();
      for (const socket of sockets) socket.destroy();
    },
  };
}

const notAsked = () => Promise.reject(new Error("not asked for"));
const NOBODY: CheckRuns = { read: notAsked, suites: notAsked, statuses: notAsked };
const NOTHING: Fetcher = { attempt: notAsked };

export interface Sources {
  readonly fetcher?: Fetcher;
  readonly checkRuns?: CheckRuns;
  readonly allowedOrigins?: readonly string[];
  /** The versions of the policy; all of them by default. */
  readonly policies?: PolicyVersions;
  /** Is told how long the arbiter would wait, in milliseconds. The tests wait for nothing. */
  readonly waits?: (ms: number) => void;
}

/** A claim from submission to evidence, as in the service. Throws if the claim is refused. */
export function examine(
  category: string,
  conditions: Record<string, unknown>,
  { fetcher = NOTHING, checkRuns = NOBODY, allowedOrigins = [], policies = POLICY_VERSIONS, waits }: Sources,
): Promise<Evidence> {
  const claims = { ...CLAIMS, policies };
  const claim = claimSchema({ ...claims, allowedOrigins }).parse({ category, conditions });
  const wait = async (ms: number) => waits?.(ms);
  const parts = { ...claims, fetcher, checkRuns, transactions: NO_TRANSACTIONS, wait };
  return gatherEvidence(parts, claim, new AbortController().signal);
}

/** The facts of one kind. */
export const factsNamed = (evidence: Evidence, name: string): Record<string, unknown>[] =>
  evidence.facts.filter(({ fact }) => fact === name) as Record<string, unknown>[];

/** `status true match`, one line per condition. */
export const judged = (evidence: Evidence): string[] =>
  factsNamed(evidence, "condition").map(({ condition, result, reason }) => `${condition} ${result} ${reason}`);
