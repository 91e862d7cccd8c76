import { readFile, writeFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import pg from "pg";
import { pino } from "pino";
import { FETCH_LIMITS_V1, MAX_ATTEMPTS_V1 } from "../api/arbiter/policy/v1/tables.ts";
import { AGAIN_AFTER_MS_V2 } from "../api/arbiter/policy/v2/http-delivery.ts";
import { CORRECTION_DAYS } from "../api/arbiter/products.ts";
import { MAX_LIMIT } from "../api/board/board.ts";
import { VALID_FOR_DAYS } from "../api/certificates/certificate.ts";
import { LEAST_REFUND, REFUNDS_A_DAY, WATCHED_DAYS } from "../api/certificates/decoys/refund.ts";
import { BAITED_KINDS } from "../api/certificates/kinds/index.ts";
import { totalCost } from "../api/certificates/kinds/kind.ts";
import { LATE_SECONDS, RETRY_COST, retry, WINDOW_SECONDS } from "../api/certificates/kinds/retry.ts";
import { HYGIENE_LIMIT_SECONDS } from "../api/certificates/kinds/suite.ts";
import { SESSION_MINUTES } from "../api/certificates/sessions/session.ts";
import { DEMO_PATH, DEMO_PRICE } from "../api/escrow/demo/sell-espresso.ts";
import { TIMEOUT_SECONDS } from "../api/escrow/payment.ts";
import { MAX_HEADER_BYTES } from "../api/payments/header.ts";
import { MAX_TIMEOUT_SECONDS } from "../api/payments/schemes/exact.ts";
import { WINDOW_MARGIN_SECONDS } from "../api/platform/chain/authorization.ts";
import { parseConfig } from "../api/platform/config/config.ts";
import { PROBLEMS } from "../api/platform/http/errors.ts";
import { MAX_BODY_BYTES } from "../api/platform/http/request.ts";
import { formatUsd } from "../api/platform/money.ts";
import { NETWORKS, type Network } from "../api/platform/networks.ts";
import { MAX_WALLETS } from "../api/score/request.ts";
import { createService } from "../api/service.ts";
import gas from "../contracts/gas-snapshot.json" with { type: "json" };
import { WINDOW_DAYS } from "../indexer/ledger.ts";
import { PACKAGE_TEXTS, packageText } from "./package-texts.ts";
import { SCORE_TABLES } from "./score-tables.ts";
import { table } from "./table.ts";

/*
 * `npm run docs` writes the generated tables of the documentation between their markers: routes and prices from the route
 * table, limits and errors from the constants. It also writes the generated parts of the packages. A test fails when one is
 * stale.
 */

const DOCS = fileURLToPath(new URL("../docs/", import.meta.url));

/** A route, from the service's own description. */
export interface RouteLine {
  readonly method: string;
  readonly path: string;
  readonly tag: string;
  readonly summary: string;
  /** A decimal, such as `0.25`; null if the route is free or the amount varies. */
  readonly price: string | null;
  /** The price, for people. */
  readonly cost: string;
}

interface Operation {
  readonly tags: readonly string[];
  readonly summary: string;
  readonly responses: Readonly<Record<string, unknown>>;
  readonly "x-payment-info"?: {
    readonly price: { readonly amount: string };
    readonly protocols: readonly { readonly x402: { readonly network: Network } }[];
  };
}

const key = (byte: number) => Buffer.alloc(32, byte).toString("base64url");
const NOWHERE = "http://127.0.0.1:1";
/** Just enough to build the service, which makes no calls until it is called. */
const SETTINGS = {
  HOST: "localhost",
  DATABASE_URL: "postgres://user@127.0.0.1:1/none",
  ...Object.fromEntries(Object.values(NETWORKS).map(({ rpcVariable }) => [rpcVariable, NOWHERE])),
  FACILITATOR_URL: NOWHERE,
  PAY_TO_ADDRESS: `0x${"11".repeat(20)}`,
  ARBITER_PRIVATE_KEY: `0x${"22".repeat(32)}`,
  SIGNING_KEY: key(1),
  SEALING_KEY: key(2),
  DECOY_SEED: key(3),
};

/** Returns every route of the service, in the order of its table. */
export async function readRoutes(): Promise<readonly RouteLine[]> {
  const config = parseConfig(SETTINGS);
  if ("problem" in config) throw new Error(config.problem);
  const silent = pino({ level: "silent" });
  const { app } = await createService(config, new pg.Pool(), { log: silent, access: silent });
  const answer = await app.request("/openapi.json");
  const { paths } = (await answer.json()) as { paths: Record<string, Record<string, Operation>> };
  return Object.entries(paths).flatMap(([path, operations]) =>
    Object.entries(operations).map(([method, operation]) => routeLine(method.toUpperCase(), path, operation)),
  );
}

function routeLine(method: string, path: string, operation: Operation): RouteLine {
  const { tags, summary, responses, "x-payment-info": info } = operation;
  const line = { method, path, summary, tag: tags[0] ?? "" };
  const network = info?.protocols[0]?.x402.network ?? "eip155:8453";
  // No escrow contract is configured here, so the demo is described without a price.
  const price = info?.price.amount ?? (method === "POST" && path === DEMO_PATH ? formatUsd(DEMO_PRICE) : null);
  if (price !== null) return { ...line, price, cost: `${price} ${NETWORKS[network].money}` };
  return { ...line, price, cost: "402" in responses ? "see its 402" : "free" };
}

function routesTable(routes: readonly RouteLine[]): string {
  const tags = [...new Set(routes.map(({ tag }) => tag))].sort(
    (one, other) => Number(one === "Discovery") - Number(other === "Discovery"),
  );
  return tags
    .map((tag) => {
      const rows = routes
        .filter((route) => route.tag === tag)
        .map(({ method, path, summary, cost }) => [`\`${method} ${path}\``, cost, summary]);
      return `### ${tag}\n\n${table(["Route", "Price", "Description"], rows)}`;
    })
    .join("\n\n");
}

const KIB = 1024;
const size = (bytes: number): string =>
  bytes >= KIB * KIB ? `${bytes / (KIB * KIB)} MiB` : `${bytes / KIB} KiB`.replace(".5", "½");

const LIMITS: readonly (readonly [string, string])[] = [
  ["Request body, unless a route accepts more", size(MAX_BODY_BYTES)],
  ["Payment header", size(MAX_HEADER_BYTES)],
  ["Lifetime that a 402 requests for an authorization", `${MAX_TIMEOUT_SECONDS} s`],
  ["Remaining lifetime that an authorization needs on arrival", `${WINDOW_MARGIN_SECONDS} s`],
  ["Lifetime that the suite accepts as short", `${HYGIENE_LIMIT_SECONDS} s`],
  ["Freshness of a certificate", `${VALID_FOR_DAYS} days`],
  ["Session of a behavioral test", `${SESSION_MINUTES} minutes`],
  ["Smallest total from one sender that a decoy refunds", `${formatUsd(LEAST_REFUND)} USDC`],
  ["Time that a decoy is watched", `${WATCHED_DAYS} days`],
  ["Refunds of decoys, per sender and in total", `1 and ${REFUNDS_A_DAY} per day`],
  ["On-chain history in a verification record and a score", `${WINDOW_DAYS} UTC days`],
  ["Wallets per batch of scores", String(MAX_WALLETS)],
  ["Certificates per page of the board", String(MAX_LIMIT)],
  ["Fetches for one `http-delivery` claim", String(MAX_ATTEMPTS_V1)],
  ["Time between a fetch and the one that must confirm it", `${AGAIN_AFTER_MS_V2 / 1000} s`],
  ["Duration of one fetch", `${FETCH_LIMITS_V1.deadlineMs / 1000} s`],
  ["Redirects of one fetch", String(FETCH_LIMITS_V1.maxRedirects)],
  ["Body of one fetch", size(FETCH_LIMITS_V1.maxBodyBytes)],
  ["Time to request a review of a verdict", `${CORRECTION_DAYS} days`],
  ["Time after which anyone can refund an escrowed payment", `${TIMEOUT_SECONDS / 60} minutes`],
];

const limitsTable = (): string => table(["Limit", "Value"], LIMITS);

const errorsTable = (): string =>
  table(
    ["Status", "Code", "Title"],
    Object.entries(PROBLEMS)
      .sort(([, one], [, other]) => one.status - other.status)
      .map(([code, { status, title }]) => [String(status), `\`${code}\``, title]),
  );

const usdc = (atomic: bigint): string => `${formatUsd(atomic)} USDC`;

const behaviorTable = (): string =>
  table(
    ["Test", "Entry", "Fair order (control)", "Bad order (bait)", "Complete test"],
    BAITED_KINDS.map((kind) => [
      `\`${kind.product}\``,
      usdc(kind.entry),
      `${usdc(kind.control)} to the address that the entry paid`,
      `${usdc(kind.bait.value)} to ${kind.bait.to === "payee" ? "the same address" : "a decoy"}`,
      usdc(totalCost(kind)),
    ]),
  );

const retryTable = (): string =>
  table(
    ["Retry safety test", "Value"],
    [
      ["Entry", usdc(retry.entry)],
      ["The two orders, to the address that the entry paid", retry.orders.map(usdc).join(" and ")],
      ["Complete test", usdc(RETRY_COST)],
      ["Delay of a late response", `${LATE_SECONDS} s`],
      ["Window of the lost order", `${WINDOW_SECONDS} s after its response was lost`],
    ],
  );

const decoysTable = (): string =>
  table(
    ["Decoys", "Value"],
    [
      ["Time that a decoy is watched after its session", `${WATCHED_DAYS} days`],
      ["Smallest total from one sender that is refunded", usdc(LEAST_REFUND)],
      ["Refunds to one sender", "1 per day"],
      ["Refunds to all senders of all decoys", `${REFUNDS_A_DAY} per day`],
    ],
  );

const gasTable = (): string =>
  table(
    ["One transaction", "Gas"],
    Object.entries(gas.proxied).map(([name, used]) => [name, used.toLocaleString("en-US")]),
  );

const batchesTable = (): string => {
  const { alone, batch, multicall3 } = gas.batches;
  const rows = Object.entries(batch).map(([size, used]) => {
    const peer = multicall3[size as keyof typeof multicall3];
    return [size, used.toLocaleString("en-US"), peer.toLocaleString("en-US"), `${Math.round((100 * used) / alone)}%`];
  });
  const last = `Share of a single payment (${alone.toLocaleString("en-US")})`;
  return table(["Payments per transaction", "Gas per payment", "Through Multicall3", last], rows);
};

const tenthTable = (): string =>
  table(
    ["After the simulation the payer…", "Gas that its payment adds to the other nine"],
    Object.entries(gas.batches.tenth).map(([change, used]) => [change, used.toLocaleString("en-US")]),
  );

const outcomesTable = (): string => {
  const { batch } = gas.outcomes;
  const rows = Object.entries(batch).map(([kind, bySize]) => [
    kind,
    ...Object.values(bySize).map((used) => used.toLocaleString("en-US")),
  ]);
  return table(["Outcomes per transaction", ...Object.keys(batch.release)], rows);
};

/** Returns the generated tables by name. */
export const renderTables = (routes: readonly RouteLine[]): Readonly<Record<string, string>> => ({
  routes: routesTable(routes),
  limits: limitsTable(),
  errors: errorsTable(),
  behavior: behaviorTable(),
  retry: retryTable(),
  decoys: decoysTable(),
  ...SCORE_TABLES,
  gas: gasTable(),
  batches: batchesTable(),
  tenth: tenthTable(),
  outcomes: outcomesTable(),
});

/** Fills every generated table into the text. */
export function withTables(text: string, tables: Readonly<Record<string, string>>): string {
  return text.replace(/(?<=<!-- generated: (\w+) -->\n).*?(?=<!-- end -->)/gs, (_, name) => {
    const found = tables[name];
    if (found === undefined) throw new Error(`there is no table ${name}`);
    return `\n${found}\n\n`;
  });
}

/** The documents with generated tables, relative to `docs/`. */
export const GENERATED = [
  "routes.md",
  "behavior.md",
  "retry-test.md",
  "decoys.md",
  "escrow.md",
  "escrow-outcomes.md",
  "score.md",
  "decisions/settlement-batch.md",
] as const;

if (import.meta.main) {
  const routes = await readRoutes();
  for (const name of PACKAGE_TEXTS) {
    const file = fileURLToPath(new URL(`../packages/${name}`, import.meta.url));
    await writeFile(file, packageText(name, await readFile(file, "utf8"), routes));
  }
  const tables = renderTables(routes);
  for (const name of GENERATED) {
    const text = await readFile(`${DOCS}${name}`, "utf8");
    await writeFile(`${DOCS}${name}`, withTables(text, tables));
  }
}
