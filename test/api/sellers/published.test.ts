import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { describe, expect, test } from "vitest";
import { jcs } from "../../../api/platform/signing/document.ts";
import { checkLogged, parsePolicy, parseProof } from "../../../packages/verifier/src/index.ts";
import { parseKeySet } from "../../../packages/verifier/src/key-set.ts";
import { forFile } from "../../support/for-file.ts";
import { expectProblem } from "../../support/payments/expectations.ts";
import { send } from "../../support/payments/requests.ts";
import { startRecords } from "../../support/sellers/records.ts";
import { EXCHANGE, FAIL, NAMED, SELLERS_WALLET, sampleOrder, UNPUBLISHED } from "../../support/sellers/samples.ts";
import { connectOwner } from "../../support/service/database.ts";
import { bareEnvironment } from "../../support/service/environment.ts";

const REMOVE = fileURLToPath(new URL("../../../scripts/evidence-remove.ts", import.meta.url));
const DAY_MS = 86_400_000;
const PATIENT = { timeout: 30_000, interval: 100 } as const;

/** The number of days that the service's clock is ahead. */
let days = 0;
const now = () => new Date(Date.now() + days * DAY_MS);

const { service, get, held } = await startRecords(now);

/** The settlement on the chain, which differs from the transaction that the seller names. */
const SEEN = {
  nonce: `0x${"0a".repeat(32)}`,
  transaction: `0x${"0b".repeat(32)}`,
  block: 77,
  from: `0x${"0c".repeat(20)}`,
  to: `0x${"0d".repeat(20)}`,
} as const;
const passed = await held({}, { settlements: [{ ...SEEN, value: 1_000n }] });

describe("A seller's certificate", () => {
  test("Programs get a record with the checks, the transactions, and the digest of the evidence", async () => {
    const { status, body, headers } = await get(`/cert/${passed}`);
    expect([status, headers.get("vary")]).toEqual([200, expect.stringMatching(/accept/i)]);
    expect(body).toMatchObject({
      id: passed,
      product: "seller",
      status: "complete",
      published: true,
      verdict: "pass",
      level: "full",
      origin: "https://seller.example",
      fresh: true,
      expired: false,
      superseded_by: null,
      correction: null,
      settlements: [{ ...SEEN, value: "1000", claimed_in: [] }],
      claimed_settlements: [
        { transaction: NAMED, explorer_url: `https://basescan.org/tx/${NAMED}`, exchanges: [1], on_chain: false },
      ],
      cert_url: `${service.url}/cert/${passed}`,
      badge_url: `${service.url}/badge/${passed}.svg`,
    });
    const { url, sha256 } = body.evidence as { url: string; sha256: string };
    const evidence = await send(url);
    expect(JSON.parse(evidence.text)).toEqual({ exchanges: [EXCHANGE], settlements: [] });
    expect(createHash("sha256").update(evidence.text).digest("hex")).toBe(sha256);
  });

  test("The exam's status links to the certificate, and browsers are redirected to it", async () => {
    const { body, headers } = await get(`/exam/${passed}`);
    expect(body).toMatchObject({
      status: "complete",
      certified: true,
      exam_url: `${service.url}/exam/${passed}`,
      cert_url: `${service.url}/cert/${passed}`,
      evidence_url: `${service.url}/cert/${passed}/evidence`,
    });
    expect(headers.get("vary")).toMatch(/accept/i);
    const sent = await fetch(`${service.url}/exam/${passed}`, {
      headers: { accept: "text/html" },
      redirect: "manual",
    });
    expect([sent.status, sent.headers.get("location")]).toEqual([303, `/cert/${passed}`]);
  });

  test("Browsers get a page on which a seller's script is text", async () => {
    const { status, text, headers } = await get(`/cert/${passed}`, "text/html");
    expect([status, headers.get("x-robots-tag")]).toEqual([200, null]);
    expect(text).toContain(`href="https://basescan.org/tx/${NAMED}"`);
    expect(text).toContain('<a href="#exchange-1"');
    expect(text).toContain("&lt;script&gt;alert(1)&lt;/script&gt;");
    expect(text).not.toContain("<script>alert");
    expect(text).toContain('rel="canonical"');
    expect(text).toContain(`<meta property="og:image" content="${service.url}/cert/${passed}/og.png">`);
    expect(text).toMatch(/0\.001 USDC in block 77<\/dt><dd>.*which no answer names/s);
    expect(text).toContain("in which the chain showed no payment of this exam");
  });

  test("The badge shows the expiry date, and the certificate expires after 30 days", async () => {
    const fresh = await get(`/badge/${passed}.svg`, "image/*");
    expect(fresh).toMatchObject({
      status: 200,
      text: expect.stringMatching(/x402 seller: full · valid until \d{4}-\d\d-\d\d/),
    });
    const etag = fresh.headers.get("etag") ?? "";
    expect((await send(`${service.url}/badge/${passed}.svg`, { headers: { "if-none-match": etag } })).status).toBe(304);
    days = 30;
    try {
      expect((await get(`/badge/${passed}.svg`, "image/*")).text).toMatch(/x402 seller: expired \d{4}-\d\d-\d\d/);
      expect((await get(`/cert/${passed}`)).body).toMatchObject({ verdict: "pass", fresh: false, expired: true });
      expect((await get("/verify?origin=https://seller.example")).body).toMatchObject({
        verified: false,
        reasons: [{ code: "pass_expired" }],
      });
    } finally {
      days = 0;
    }
  });

  test("The certificate is in the transparency log and can be verified offline, and forged copies fail", async () => {
    const path = `/cert/${passed}.tlog-proof`;
    await expect.poll(async () => (await get(path, "text/plain")).status, PATIENT).toBe(200);
    const proof = (await get(path, "text/plain")).text;
    const { policy } = (await get("/log")).body as { policy: string };
    const record = (await get(`/cert/${passed}`)).text;
    const expected = { keys: await parseKeySet((await get("/.well-known/jwks.json")).text), issuer: service.url };
    const check = (text: string) =>
      checkLogged({ proof, policy: parsePolicy(policy), expected, subject: { record: text } });
    expect(await check(record)).toMatchObject({ valid: true, type: "seller_certificate", id: passed });
    expect(JSON.parse(record).log).toMatchObject([{ type: "seller_certificate", proof_url: `${service.url}${path}` }]);
    const forged = [
      record.replace('"level":"full"', '"level":"safe"'),
      record.replace("https://seller.example", "https://evil.example"),
      record.replace('"block":77', '"block":78'),
      record.replace('"value":"1000"', '"value":"999"'),
      record.replace('"check":"purchase","title"', '"check":"replay","title"'),
      record.replace(/"sha256":"[0-9a-f]{64}"/, `"sha256":"${"0".repeat(64)}"`),
    ];
    for (const text of forged) {
      expect(text).not.toBe(record);
      expect(await check(text)).toMatchObject({ valid: false, code: "entry_mismatch" });
    }
    expect((await get(`/cert/${passed}`, "text/html")).text).toContain("In the log at index");
  });

  test("A FAIL, its correction, and its reversal each have a log entry that can be verified offline", async () => {
    const failed = await held({ origin: "https://failed.example" }, FAIL);
    const owner = await forFile(await connectOwner(service.database));
    await owner.query("INSERT INTO seller_exam_correction (exam, reason) VALUES ($1, 'our node was behind')", [failed]);
    await owner.query("INSERT INTO seller_exam_reversal (exam) VALUES ($1)", [failed]);
    const { policy } = (await get("/log")).body as { policy: string };
    const expected = { keys: await parseKeySet((await get("/.well-known/jwks.json")).text), issuer: service.url };
    const cert_url = `${service.url}/cert/${failed}`;
    for (const [type, members] of [
      ["seller_certificate", { type: "IssuedSellerCertificate", verdict: "fail", level: null, cert_url }],
      [
        "seller_correction",
        { type: "CorrectedSellerCertificate", certificate: failed, cert_url, reason: "our node was behind" },
      ],
      ["reversal", { type: "ReversedCertificate", certificate: failed, cert_url }],
    ] as const) {
      const path = `/cert/${failed}.tlog-proof?type=${type}`;
      await expect.poll(async () => (await get(path, "text/plain")).status, PATIENT).toBe(200);
      const proof = (await get(path, "text/plain")).text;
      const record = (await get(`/cert/${failed}`)).text;
      const given = { proof, policy: parsePolicy(policy), expected, subject: { record } };
      expect(await checkLogged(given)).toMatchObject({ valid: true, type, id: failed });
      const { index, extra = new Uint8Array() } = parseProof(proof);
      const entry = JSON.parse(Buffer.from(extra).toString());
      expect(entry).toMatchObject({ id: failed, index, type, version: 1, document: members });
      expect(Buffer.from(extra).toString()).toBe(jcs(entry));
    }
  });
});

test("Evidence removed by a court order is no longer public, and every proof of the exam still verifies", async () => {
  const id = await held({ origin: "https://removed.example" });
  const before = (await get(`/cert/${id}`)).body.evidence as { url: string; sha256: string };
  await expect.poll(async () => (await get(`/cert/${id}.tlog-proof`, "text/plain")).status, PATIENT).toBe(200);
  const remove = (databaseUrl: string, ...args: readonly string[]) =>
    promisify(execFile)(process.execPath, [REMOVE, ...args], {
      env: { ...bareEnvironment(), DATABASE_URL: databaseUrl },
    })
      .then(({ stdout }) => stdout)
      .catch(({ stderr }) => String(stderr));
  const { ownerUrl, apiUrl } = service.database;
  const reason = ["--reason", "Order of the court of Example, 12 C 34/26."];
  expect(await remove(apiUrl, id, ...reason)).toMatch(/^The role in DATABASE_URL may not remove evidence/);
  expect(await remove(ownerUrl, id)).toMatch(/^Expected an ID of 32 hex digits and a reason/);
  expect(await remove(ownerUrl, "0".repeat(32), ...reason)).toMatch(/^There is no exam 0{32}/);
  expect((await get(`/cert/${id}/evidence`)).status).toBe(200);

  expect(await remove(ownerUrl, id, ...reason)).toContain(before.sha256);
  expect(await remove(ownerUrl, id, ...reason)).toMatch(/was already removed: Order of the court/);
  const gone = await get(`/cert/${id}/evidence`);
  expectProblem(gone, 451, "evidence_removed");
  expect(gone.text).toContain(before.sha256);
  expect(gone.text).toContain("12 C 34/26");
  const record = await get(`/cert/${id}`);
  expect(record.body).toMatchObject({
    verdict: "pass",
    evidence: { ...before, removed: { reason: reason[1], at: expect.any(String) } },
  });
  expect((await get(`/cert/${id}`, "text/html")).text).toContain("The evidence was removed on");

  const { policy } = (await get("/log")).body as { policy: string };
  const expected = { keys: await parseKeySet((await get("/.well-known/jwks.json")).text), issuer: service.url };
  const proof = (await get(`/cert/${id}.tlog-proof`, "text/plain")).text;
  const given = { proof, policy: parsePolicy(policy), expected, subject: { record: record.text } };
  expect(await checkLogged(given)).toMatchObject({ valid: true, type: "seller_certificate", id });

  // The owner's role cannot make any other change, or remove evidence without a reason.
  const owner = await forFile(connectOwner(service.database));
  for (const change of [
    `UPDATE seller_exam_result SET evidence = '{}' WHERE exam = '${id}'`,
    `UPDATE seller_exam_result SET level = NULL WHERE exam = '${id}'`,
    `UPDATE seller_exam_result SET evidence = NULL WHERE exam = '${passed}'`,
    `UPDATE seller_exam_removal SET reason = 'another' WHERE exam = '${id}'`,
    `DELETE FROM seller_exam_removal WHERE exam = '${id}'`,
  ])
    await expect(owner.query(change), change).rejects.toThrow("is append-only");
});

describe("An unpublished exam", () => {
  test("An unpublished exam is reachable only by its id and certifies nothing", async () => {
    const origin = "https://interrupted.example";
    const id = await held({ origin }, { ...UNPUBLISHED, checks: [] });
    const { body } = await get(`/cert/${id}`);
    expect(body).toMatchObject({ published: false, verdict: null, level: null, badge_url: null, fresh: false });
    const page = await get(`/cert/${id}`, "text/html");
    expect(page).toMatchObject({ status: 200, text: expect.stringContaining("Nothing is certified here") });
    expect(page.headers.get("x-robots-tag")).toBe("noindex");
    expect(page.text).toContain('content="noindex"');
    expect((await get(`/badge/${id}.svg`, "image/*")).status).toBe(404);
    const picture = await get(`/cert/${id}/og.png`);
    expect([picture.status, picture.headers.get("content-type")]).toEqual([404, "image/png"]);
    expectProblem(await get(`/cert/${id}/credential`), 404, "not_found");
    expect((await get(`/exam/${id}`)).headers.get("x-robots-tag")).toBe("noindex");
    expect((await get(`/payee/${SELLERS_WALLET}`)).text).not.toContain(origin);
    expect((await get(`/credential?origin=${origin}`)).body).toMatchObject({ credentialSubject: { tested: false } });
    expect((await get(`/verify?origin=${origin}`)).body).toMatchObject({ tested: false, certs: [] });
    expectProblem(await get(`/cert/${id}.tlog-proof`), 404, "not_found");
    expect((await get("/board?capability=seller")).text).not.toContain(origin);
  });

  test("An exam that does not exist gets 404 on every route", async () => {
    const id = "0".repeat(32);
    for (const path of [`/exam/${id}`, `/cert/${id}`, `/cert/${id}/evidence`])
      expectProblem(await get(path), 404, "not_found");
    expectProblem(await get(`/cert/${id}.tlog-proof`), 404, "not_found");
    expect((await get(`/badge/${id}.svg`, "image/*")).status).toBe(404);
  });
});

test("A seller's URL is shown as text without invisible characters on every page", async () => {
  const origin = "https://hostile.example";
  const url = `${origin}/"><script>alert(1)</script>\u202e${"x".repeat(5_000)}`;
  const payTo = `0x${"9e".repeat(20)}` as const;
  const { payment } = sampleOrder();
  const id = await held({ origin, url, payTo, payment: { ...payment, payer: payTo } });
  const entry = `/cert/${id}.tlog-proof`;
  await expect.poll(async () => (await get(entry, "text/plain")).status, PATIENT).toBe(200);
  const { log } = (await get(`/cert/${id}`)).body as { log: { index: number }[] };
  const pages = [
    `/cert/${id}`,
    `/verify?origin=${origin}`,
    "/board?capability=seller",
    "/log",
    `/log/entry/${log[0]?.index}`,
  ];
  for (const path of pages) {
    const { status, text } = await get(path, "text/html");
    expect([path, status]).toEqual([path, 200]);
    expect(text.includes("<script>alert"), path).toBe(false);
    expect(/(?![\n\t])[\p{Cc}\p{Cf}\p{Cs}]/u.exec(text)?.index, path).toBeUndefined();
  }
  for (const path of [`/badge/${id}.svg`, `/cert/${id}.tlog-proof`])
    expect((await get(path, "*/*")).text, path).not.toContain("<script>alert");
  expect((await get(`/payee/${payTo}`)).body).toMatchObject({ exams: [{ url }] });
});

describe("GET /verify?origin=", () => {
  test.each(["https://seller.example", "HTTPS://Seller.Example:443/"])(
    "The origin %s is found in any form",
    async (given) => {
      const { status, body } = await get(`/verify?origin=${encodeURIComponent(given)}`);
      expect(status).toBe(200);
      expect(body).toMatchObject({
        origin: "https://seller.example",
        tested: true,
        verified: true,
        reasons: [],
        certs: [{ id: passed, result: "pass", level: "full", fresh: true }],
        freshness_policy: { valid_for_days: 30 },
        how_to_test: `${service.url}/inspect`,
      });
    },
  );

  test("A FAIL still counts after 101 newer exams", async () => {
    const origin = "https://many.example";
    await held({ origin, url: `${origin}/hidden` }, { ...FAIL, endedAt: new Date(Date.now() - DAY_MS) });
    for (let place = 0; place < 101; place++) await held({ origin });
    expect((await get(`/verify?origin=${origin}`)).body).toMatchObject({ verified: false });
  });

  test.each([
    ["", /exactly one query parameter: wallet.*or origin/],
    ["?origin=https://seller.example&wallet=0x00000000000000000000000000000000000000aa", /both wallet and origin/],
    ["?origin=https://seller.example/haiku", /names more than an origin; expected https:\/\/seller\.example/],
    ["?origin=a&origin=b", /more than once/],
    ["?origin=https://seller.example&path_prefix=haiku", /path_prefix: the path prefix "haiku" is not plain; expected/],
  ])("The query %j gets 400 with a correction", async (query, detail) => {
    const answer = await get(`/verify${query}`);
    expectProblem(answer, 400, "malformed_request");
    expect(answer.body.detail).toMatch(detail);
  });
});
