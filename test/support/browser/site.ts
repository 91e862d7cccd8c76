import pg from "pg";
import { type Certificate, validUntil } from "../../../api/certificates/certificate.ts";
import { createCertificateStore } from "../../../api/certificates/store.ts";
import { bytes } from "../../../api/platform/db/connection.ts";
import { NETWORKS } from "../../../api/platform/networks.ts";
import type { NewResult } from "../../../api/sellers/exam-store.ts";
import { createGrantStore } from "../../../api/sellers/orders-store.ts";
import { createCorrections } from "../../../api/sellers/published/store.ts";
import type { ExamOrder } from "../../../api/sellers/record.ts";
import { devAccount } from "../../../scripts/embedded/dev-accounts.ts";
import { FAILING, PASSING, RESISTING, SCAMMED, UNVERIFIED } from "../certificates/samples.ts";
import { startTestChain } from "../chain/chain.ts";
import { EXAMINED } from "../sellers/examined.ts";
import { SELLERS_WALLET, sampleOrder, sampleResult, storeExam, storeOrder } from "../sellers/samples.ts";
import { startService, type TestService } from "../service/service.ts";
import { STOCK_CLIENTS } from "../sessions/agents.ts";

const DAY_MS = 86_400_000;
const OTHER_WALLET = "0x90f79bf6eb2c4f870365e785982e1f101e93b906";

/** The real service with certificates in every state, and the paths to look at. */
export interface Site {
  readonly baseUrl: string;
  /** Name of a page, for its screenshots, and its path. */
  readonly pages: Readonly<Record<string, string>>;
  /** The certificate of a payment that really settled. */
  readonly certificate: string;
  readonly close: () => Promise<void>;
}

export async function startSite(): Promise<Site> {
  const chain = await startTestChain();
  const service = await startService({ chain });
  const paid = await STOCK_CLIENTS[0]?.post(`${service.url}/test/suite`, devAccount(1));
  await seed(service);
  const sellers = await seedSellers(service);
  const certificate = new URL(String(paid?.body.cert_url)).pathname;
  return {
    baseUrl: service.url,
    certificate,
    pages: {
      home: "/",
      "certificate-pass": certificate,
      "certificate-fail": `/cert/${FAILING.id}`,
      "certificate-expired": "/cert/a1b2c3d4e5f60718",
      "certificate-reversed": "/cert/0f1e2d3c4b5a6978",
      "certificate-resisting": `/cert/${RESISTING.id}`,
      "certificate-scammed": `/cert/${SCAMMED.id}`,
      "certificate-unverified": `/cert/${UNVERIFIED.id}`,
      verification: `/verify?wallet=${devAccount(1).address}`,
      "verification-unknown": "/verify?wallet=0x00000000000000000000000000000000000000aa",
      ...sellers,
      status: "/status",
      "not-found": "/cert/ffffffffffffffff",
    },
    close: async () => {
      await service.stop();
      await chain.stop();
    },
  };
}

/** States that take days or a reorganization to come about, stored as the service stores them. */
async function seed({ database }: TestService): Promise<void> {
  const pool = new pg.Pool({ connectionString: database.apiUrl });
  const issued = (daysAgo: number) => {
    const issuedAt = new Date(Date.now() - daysAgo * DAY_MS);
    return { issuedAt, validUntil: validUntil(issuedAt) };
  };
  await store(pool, { ...FAILING, wallet: OTHER_WALLET, ...issued(2) }, 1);
  await store(
    pool,
    { ...PASSING, ...issued(80), id: "a1b2c3d4e5f60718", product: "basic", checks: { paid: "pass" } },
    2,
  );
  await store(pool, { ...PASSING, wallet: OTHER_WALLET, ...issued(1), id: "0f1e2d3c4b5a6978" }, 3);
  await store(pool, { ...RESISTING, ...issued(1) }, 4);
  await store(pool, { ...SCAMMED, wallet: OTHER_WALLET, ...issued(1) }, 5);
  await store(pool, { ...UNVERIFIED, wallet: OTHER_WALLET, ...issued(1) }, 6);
  await pool.query("INSERT INTO published_proof (certificate, document) VALUES ($1, $2)", [SCAMMED.id, SCAMMED.proof]);
  const asset = NETWORKS["eip155:8453"].usdc.address;
  await pool.query(
    "INSERT INTO settlement_mark (chain, asset, payer, nonce, kind) VALUES (8453, $1, $2, $3, 'reversed')",
    [bytes(asset), bytes(OTHER_WALLET), bytes(nonce(3))],
  );
  await pool.end();
}

/** Exams as a hostile seller would have them: their words are long, and written to mislead. */
async function seedSellers({ database }: TestService): Promise<Readonly<Record<string, string>>> {
  const pool = new pg.Pool({ connectionString: database.apiUrl });
  const store = async (order: Partial<ExamOrder>, result: Partial<NewResult>) => {
    const stored = sampleOrder(order);
    const endedAt = new Date(Date.now() - DAY_MS);
    await storeExam(pool, stored, sampleResult({ endedAt, ...EXAMINED, ...result }));
    return `/cert/${stored.id}`;
  };
  const origin = "https://haiku.example";
  const url = `${origin}/haiku`;
  const failed = await store({ origin, url }, { level: null, endedAt: new Date(Date.now() - 2 * DAY_MS) });
  const corrected = await store({ origin: "https://corrected.example" }, {});
  const reason = "Our node was behind, and did not show a transfer that was there. <b>It is now</b>.";
  await createCorrections(pool).correct(corrected.slice("/cert/".length), reason);
  await createGrantStore(pool).grant(corrected.slice("/cert/".length), "0".repeat(64));
  const waiting = sampleOrder({ origin: "https://waiting.example" });
  await storeOrder(pool, waiting);
  const reversed = await store({ origin: "https://reversed.example" }, {});
  await pool.query("INSERT INTO seller_exam_reversal (exam) VALUES ($1)", [reversed.slice("/cert/".length)]);
  const nothing = { outcome: "interrupted", isPublic: false, level: null, validUntil: null } as const;
  const pages = {
    "seller-pass": await store(
      { origin, url, payTo: SELLERS_WALLET, other: `${origin}/sonnet?${"line=".repeat(60)}` },
      {},
    ),
    "seller-superseded": failed,
    "seller-fail": await store({}, { level: null }),
    "seller-interrupted": await store({}, { ...nothing, checks: [], settlements: [] }),
    "seller-expired": await store(
      { origin: "https://expired.example" },
      { level: "safe", endedAt: new Date(Date.now() - 40 * DAY_MS) },
    ),
    "seller-corrected": corrected,
    "seller-reversed": reversed,
    "seller-under-way": `/exam/${waiting.id}`,
    "seller-verification": `/verify?origin=${origin}`,
    "seller-verification-fail": "/verify?origin=https://seller.example",
    payee: `/payee/${SELLERS_WALLET}`,
    "payee-unknown": `/payee/0x${"0a".repeat(20)}`,
    "seller-unknown": "/verify?origin=https://unknown.example",
    "board-sellers": "/board?capability=seller",
  };
  await pool.end();
  return pages;
}

const nonce = (ordinal: number): `0x${string}` => `0x${ordinal.toString(16).padStart(64, "0")}`;

async function store(pool: pg.Pool, certificate: Certificate, ordinal: number): Promise<void> {
  const { network } = certificate.settlement;
  const payment = { network, asset: NETWORKS[network].usdc.address, payer: certificate.wallet, nonce: nonce(ordinal) };
  const { text, values } = createCertificateStore(pool).adding(certificate, { payment, also: null });
  await pool.query(text, [...values]);
}
