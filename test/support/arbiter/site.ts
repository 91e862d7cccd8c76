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

export type Handler = (request: IncomingMessage, response: ServerResponse) => void;

/**
 * The public address that the tests' names resolve to. No packet goes there, because `site.dial` connects to the local
 * servers.
 */
export const PUBLIC_ADDRESS = "93.184.216.34";
const OWN_HOST = "trust.example";
const OWN_ADDRESS = "93.184.216.99";
/** The service's settings in the guard of every test. */
const SETTINGS = { ownHost: OWN_HOST, allowedOrigins: [] } as const;

/** The settings by which the arbiter accepts claims. */
export const CLAIMS = { ...SETTINGS, policies: POLICY_VERSIONS, now: () => new Date() };

export interface Site {
  readonly handlers: Map<string, Handler>;
  /** Path, host, and headers of every request that arrived. */
  readonly requests: { readonly path: string; readonly host: string; readonly headers: IncomingMessage["headers"] }[];
  /** Every requested connection, as `address:port`. */
  readonly dialled: string[];
  readonly dial: Dial;
  readonly port: number;
  fetcher(options?: Partial<GuardedFetchOptions>): Fetcher;
  close(): void;
}

const listening = (server: Server): Promise<number> =>
  new Promise((resolve) => server.listen(0, "127.0.0.1", () => resolve((server.address() as AddressInfo).port)));

/** A connection that is refused. */
function refusedSocket(): Socket {
  const socket = new Socket();
  process.nextTick(() => socket.destroy(Object.assign(new Error("refused by the test"), { code: "ECONNREFUSED" })));
  return socket;
}

/** Resolves the tests' names. An unknown name has no address. */
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
    else response.writeHead(404).end("not found");
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

const notAsked = () => Promise.reject(new Error("not requested"));
const NOBODY: CheckRuns = { read: notAsked, suites: notAsked, statuses: notAsked };
const NOTHING: Fetcher = { attempt: notAsked };

export interface Sources {
  readonly fetcher?: Fetcher;
  readonly checkRuns?: CheckRuns;
  readonly allowedOrigins?: readonly string[];
  /** The versions of the policy. All of them by default. */
  readonly policies?: PolicyVersions;
  /** Receives the arbiter's waits, in milliseconds. The tests do not actually wait. */
  readonly waits?: (ms: number) => void;
}

/** A claim from submission to evidence, as in the service. @throws if the claim is refused */
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

/**
 * Certificates of the tests' own TLS servers, for `shop.example` unless stated otherwise. They were made with OpenSSL
 * only for these tests. No other program trusts them, and their keys are not secret.
 */

/** Signs all certificates except `SELF_SIGNED`. Valid to 2126. */
const TEST_CA = `-----BEGIN CERTIFICATE-----
MIIBZzCCAQ2gAwIBAgIBBDAKBggqhkjOPQQDAjAaMRgwFgYDVQQDDA9BcmJpdGVy
IHRlc3QgQ0EwIBcNMjAwMTAxMDAwMDAwWhgPMjEyNjAxMDEwMDAwMDBaMBoxGDAW
BgNVBAMMD0FyYml0ZXIgdGVzdCBDQTBZMBMGByqGSM49AgEGCCqGSM49AwEHA0IA
BPim/o/PjK0j7TeJI8mWjnQkQqeMsqkwnJuYqg5mh66Z0rrfnx9GMAy39tovKOaG
bK2o/nxRrnHD2Y5qP19n0d2jQjBAMA8GA1UdEwEB/wQFMAMBAf8wDgYDVR0PAQH/
BAQDAgIEMB0GA1UdDgQWBBTEu5C3s020yazFKft1OybiFl4ANTAKBggqhkjOPQQD
AgNIADBFAiEA6WSqUwi+XLdlOX7HHGFJ1yv/iBSrurYegmdNis/xJMoCIHenpDPW
eET2I8aRIb37SpaXtKsCAnigg8RZ5O7dnC7R
-----END CERTIFICATE-----
`;

/** Valid to 2120. */
const GOOD = {
  cert: `-----BEGIN CERTIFICATE-----
MIIBfTCCASOgAwIBAgIBATAKBggqhkjOPQQDAjAaMRgwFgYDVQQDDA9BcmJpdGVy
IHRlc3QgQ0EwIBcNMjAwMTAxMDAwMDAwWhgPMjEyMDAxMDEwMDAwMDBaMBcxFTAT
BgNVBAMMDHNob3AuZXhhbXBsZTBZMBMGByqGSM49AgEGCCqGSM49AwEHA0IABG7A
hrvzEdeAwE5rNVIbxc//Rw01pwIsvG2QRVurohnEJQ54foPqKp8hvjkRiYdORvii
qdMbOqjuFnWCgUqR9RqjWzBZMBcGA1UdEQQQMA6CDHNob3AuZXhhbXBsZTAdBgNV
HQ4EFgQUQKbmQskMRuORacHX922Yyn45SEQwHwYDVR0jBBgwFoAUxLuQt7NNtMms
xSn7dTsm4hZeADUwCgYIKoZIzj0EAwIDSAAwRQIga78oZeN9AWOQsejQShzeRgd6
0j7D+05Q828Vymc0WJwCIQDb8z7JUcaNjUclpMEo/PwhCS4uA+ON0t2e6OpB4j4A
yg==
-----END CERTIFICATE-----
`,
  key: `-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgZUW7sv2cr8ueqXko
v3WcgLGu+lQEMTLd1ZVvwuw/sXyhRANCAARuwIa78xHXgMBOazVSG8XP/0cNNacC
LLxtkEVbq6IZxCUOeH6D6iqfIb45EYmHTkb4oqnTGzqo7hZ1goFKkfUa
-----END PRIVATE KEY-----
`,
};

/** Expired in 2021. */
export const EXPIRED = {
  cert: `-----BEGIN CERTIFICATE-----
MIIBezCCASGgAwIBAgIBAjAKBggqhkjOPQQDAjAaMRgwFgYDVQQDDA9BcmJpdGVy
IHRlc3QgQ0EwHhcNMjAwMTAxMDAwMDAwWhcNMjEwMTAxMDAwMDAwWjAXMRUwEwYD
VQQDDAxzaG9wLmV4YW1wbGUwWTATBgcqhkjOPQIBBggqhkjOPQMBBwNCAASESbyn
uVExIgs2D1sCnCYeridTsXt5rDVIKxlOcrr5KwSE4Kc0LZpwl9XLW8/NQsaPLYvi
btQxzQVIzukQzL4jo1swWTAXBgNVHREEEDAOggxzaG9wLmV4YW1wbGUwHQYDVR0O
BBYEFIHj5lS6yjhTN2VpAFNnAvCaR+l8MB8GA1UdIwQYMBaAFMS7kLezTbTJrMUp
+3U7JuIWXgA1MAoGCCqGSM49BAMCA0gAMEUCIGHYr4CkLwUEVNehGPc7ncwIOv5+
il9DofEGlO2Eq6iBAiEAm7+sutEFIm54UzlBle71Va8xaUQ7TCbI1DmFJ6xWg6w=
-----END CERTIFICATE-----
`,
  key: `-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgvSUWi56FHUyNcYYS
fUlqp6Huegd2KO1WZr4x7w3k+GKhRANCAASESbynuVExIgs2D1sCnCYeridTsXt5
rDVIKxlOcrr5KwSE4Kc0LZpwl9XLW8/NQsaPLYvibtQxzQVIzukQzL4j
-----END PRIVATE KEY-----
`,
};

/** For `elsewhere.example`. */
export const OTHER_HOST = {
  cert: `-----BEGIN CERTIFICATE-----
MIIBhzCCAS2gAwIBAgIBAzAKBggqhkjOPQQDAjAaMRgwFgYDVQQDDA9BcmJpdGVy
IHRlc3QgQ0EwIBcNMjAwMTAxMDAwMDAwWhgPMjEyMDAxMDEwMDAwMDBaMBwxGjAY
BgNVBAMMEWVsc2V3aGVyZS5leGFtcGxlMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcD
QgAEDFgE3ubabVBCIuXDKbWWrTQwZr47aLhmaK3OmzqFcfccGrzkraVxf9b3FXv3
7z3cok3a5SG4/rKnGMbmPETFZqNgMF4wHAYDVR0RBBUwE4IRZWxzZXdoZXJlLmV4
YW1wbGUwHQYDVR0OBBYEFBEByM6z9jnxwE4Jt4efmw7sMxMdMB8GA1UdIwQYMBaA
FMS7kLezTbTJrMUp+3U7JuIWXgA1MAoGCCqGSM49BAMCA0gAMEUCIQCuuufOgipY
8wgQkOGZ6qFemFvwkhmK6hxI1Tdvyd5LMgIgLoI8CNPnSYPBwEPCYA+KRLDrwBn4
apGu2OIvqaTmBdk=
-----END CERTIFICATE-----
`,
  key: `-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgrg9TSsFYe0sxkaQS
7cmnZKOIbRmPaSvHXBdAeRxsgyehRANCAAQMWATe5tptUEIi5cMptZatNDBmvjto
uGZorc6bOoVx9xwavOStpXF/1vcVe/fvPdyiTdrlIbj+sqcYxuY8RMVm
-----END PRIVATE KEY-----
`,
};

/** Self-signed. */
export const SELF_SIGNED = {
  cert: `-----BEGIN CERTIFICATE-----
MIIBnjCCAUSgAwIBAgIUKnX6YMZLJnxhkIjb4YxPPFDPdB8wCgYIKoZIzj0EAwIw
FzEVMBMGA1UEAwwMc2hvcC5leGFtcGxlMCAXDTI2MTEyMTIzNTUzM1oYDzIxMjYx
MDI4MjM1NTMzWjAXMRUwEwYDVQQDDAxzaG9wLmV4YW1wbGUwWTATBgcqhkjOPQIB
BggqhkjOPQMBBwNCAAQXjGc0wY7KuCJBAp+ibs7voasuMzYM+uvZOHWWvN3f5BDb
bLx2/t2cbn1qyqQs097Dkb4SLJDWj6KjinSw4zbgo2wwajAdBgNVHQ4EFgQUXNPn
XqNJHx8ZpEIzTM609Jpp5MkwHwYDVR0jBBgwFoAUXNPnXqNJHx8ZpEIzTM609Jpp
5MkwDwYDVR0TAQH/BAUwAwEB/zAXBgNVHREEEDAOggxzaG9wLmV4YW1wbGUwCgYI
KoZIzj0EAwIDSAAwRQIgb3o0LXrusQXERT+abaih/tjmFW2IBqtygqQ6VJEX5RwC
IQCdUOf6Fzi/h4u6vznDuKTLoJOMvNB8yEJ2XwRSZiI6jw==
-----END CERTIFICATE-----
`,
  key: `-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgCTyJMzn8iXJJt5zF
eEi6iyuP4EaRDBr++57bjXM3BTKhRANCAAQXjGc0wY7KuCJBAp+ibs7voasuMzYM
+uvZOHWWvN3f5BDbbLx2/t2cbn1qyqQs097Dkb4SLJDWj6KjinSw4zbg
-----END PRIVATE KEY-----
`,
};
