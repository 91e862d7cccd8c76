import { createHash } from "node:crypto";
import pg from "pg";
import { type Certificate, validUntil } from "../../../api/certificates/certificate.ts";
import { createCertificateStore } from "../../../api/certificates/store.ts";
import { bytes } from "../../../api/platform/db/connection.ts";
import { NETWORKS } from "../../../api/platform/networks.ts";
import type { Hex } from "../../../api/platform/wallet.ts";
import type { NewResult } from "../../../api/sellers/exam-store.ts";
import { createGrantStore } from "../../../api/sellers/orders-store.ts";
import type { KeptExchange } from "../../../api/sellers/published/schemas.ts";
import { createCorrections } from "../../../api/sellers/published/store.ts";
import type { ExamOrder } from "../../../api/sellers/record.ts";
import { type FindingCode, REMEDIES } from "../../../packages/seller-check/src/exam/remedies.ts";
import { CHECKS } from "../../../packages/seller-check/src/exam/vocabulary.ts";
import { devAccount } from "../../../scripts/embedded/dev-accounts.ts";
import { FAILING, PASSING, RESISTING, SCAMMED, UNVERIFIED } from "../certificates/samples.ts";
import { startTestChain } from "../chain/chain.ts";
import { evidenceText, SELLERS_WALLET, sampleOrder, sampleResult, storeExam, storeOrder } from "../sellers/samples.ts";
import { startService, type TestService } from "../service/service.ts";
import { STOCK_CLIENTS } from "../sessions/agents.ts";

const DAY_MS = 86_400_000;
const OTHER_WALLET = "0x90f79bf6eb2c4f870365e785982e1f101e93b906";

/** The real service with certificates in every state, and the paths of its pages. */
export interface Site {
  readonly baseUrl: string;
  /** The pages' paths, by the names of their screenshots. */
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

/** Stores states, in the service's own format, that would take days or a reorganization to reach. */
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

/** Exams with a hostile seller's texts, which are long and misleading. */
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

const TRANSACTION = `0x${"cd".repeat(32)}`;
const MISLEADING = `<img src=x onerror=alert(1)> \u202e${"long-words-without-a-break".repeat(40)}`;

const body = (text: string) => ({
  bytes: Buffer.byteLength(text),
  sha256: createHash("sha256").update(text).digest("hex"),
  text,
  base64: null,
  isWhole: true,
});

const exchange = (number: number): KeptExchange => ({
  number,
  request: {
    method: number % 4 === 0 ? "POST" : "GET",
    url: "https://seller.example/haiku",
    querySha256: number % 3 === 0 ? "1".repeat(64) : null,
    headers: { "payment-signature": Buffer.from("a payment ".repeat(80)).toString("base64") },
    bodySha256: number % 4 === 0 ? "2".repeat(64) : null,
  },
  answer:
    number === 9
      ? null
      : {
          status: number < 5 ? 402 : 200,
          headers: {
            "content-type": "application/json",
            "x-powered-by": MISLEADING,
            ...(number === 6
              ? { "payment-response": Buffer.from(JSON.stringify({ transaction: TRANSACTION })).toString("base64") }
              : {}),
          },
          body: body(number < 5 ? "{}" : `{"haiku":"An old silent pond"}\n${MISLEADING}`),
        },
  failure: number === 9 ? "the connection was closed on purpose" : null,
});

const evidence = evidenceText(Array.from({ length: 12 }, (_, place) => exchange(place + 1)));

const settled = (place: number, transaction: string) => ({
  nonce: `0x${String(place).repeat(64)}` as Hex,
  transaction: transaction as Hex,
  block: 31_415_926 + place,
  from: `0x${"e8".repeat(20)}` as Hex,
  to: `0x${"5e".repeat(20)}` as Hex,
  value: 1_000n,
});

/** The result of a complete exam with the seller's own texts. */
const EXAMINED: Pick<NewResult, "checks" | "evidence" | "evidenceSha256" | "settlements"> = {
  settlements: [settled(1, TRANSACTION), settled(2, `0x${"ab".repeat(32)}`)],
  checks: CHECKS.map((check) =>
    check === "binding"
      ? { check, outcome: "not_applicable", reason: "no other paid route of this origin is known", findings: [] }
      : {
          check,
          outcome: check === "caching" ? "fail" : "pass",
          reason: null,
          findings: [
            {
              code: Object.keys(REMEDIES).find((code) => code.startsWith(`${check}.`)) as FindingCode,
              statement: "A payment as quoted is answered with the result (got 200)",
              holds: true,
              exchanges: [5, 6],
            },
            ...(check === "caching"
              ? [
                  {
                    code: "caching.not_stored" as const,
                    statement: `A shared cache may not store it, whose Cache-Control is ${MISLEADING}`,
                    holds: false,
                    exchanges: [6],
                  },
                ]
              : []),
          ],
        },
  ),
  evidence,
  evidenceSha256: createHash("sha256").update(evidence).digest("hex"),
};
