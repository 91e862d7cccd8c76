import { createHash } from "node:crypto";
import pg from "pg";
import { describe, expect, test } from "vitest";
import type { NewResult } from "../../../api/sellers/exam-store.ts";
import type { ExamOrder } from "../../../api/sellers/record.ts";
import { startTestChain } from "../../support/chain/chain.ts";
import { forFile } from "../../support/for-file.ts";
import { send } from "../../support/payments/requests.ts";
import { FAIL, heldIn, sampleOrder } from "../../support/sellers/samples.ts";
import { startService } from "../../support/service/service.ts";

const chain = await forFile(startTestChain());
const service = await forFile(startService({ chain }));
const pool = await forFile(new pg.Pool({ connectionString: service.database.apiUrl, max: 1 }));
const get = (path: string, accept = "application/json") => send(`${service.url}${path}`, { headers: { accept } });
const held = (...exam: [Partial<ExamOrder>?, Partial<NewResult>?]) => heldIn(pool, ...exam);

describe("a tenant of a shared host", () => {
  const origin = "https://shared.example";
  const consent = (prefix: string) => ({ consent: { ...sampleOrder().consent, prefix } });
  const verified = async (prefix?: string) =>
    (await get(`/verify?origin=${origin}${prefix === undefined ? "" : `&path_prefix=${prefix}`}`)).body;
  const board = async () =>
    ((await get("/board?capability=seller&limit=100")).body.sellers as { origin: string; path_prefix: string }[])
      .filter((seller) => seller.origin === origin)
      .map(({ path_prefix }) => path_prefix);

  test("has a record of its own, which neither certifies nor convicts the origin or its neighbors", async () => {
    const passing = await held({ origin, url: `${origin}/~ada/haiku`, ...consent("/~ada/") });
    const failing = await held({ origin, url: `${origin}/~bob/haiku`, ...consent("/~bob/") }, FAIL);
    expect(await verified()).toMatchObject({ path_prefix: "/", tested: false, verified: false, certs: [] });
    expect(await verified("/~ada")).toMatchObject({ path_prefix: "/~ada/", verified: true, certs: [{ id: passing }] });
    expect(await verified("/~bob/")).toMatchObject({ tested: true, verified: false, certs: [{ id: failing }] });
    expect(await verified("/~bo/")).toMatchObject({ tested: false });
    expect(await board()).toEqual(["/~ada/"]);
    const { body } = await get(`/credential?origin=${origin}&path_prefix=/~ada/`);
    const subject = { id: `${origin}/~ada/`, path_prefix: "/~ada/", verified: true };
    expect(body.credentialSubject).toMatchObject(subject);
    expect(body.credentialSubject).not.toHaveProperty("origin");
    expect((await get(`/cert/${passing}`)).body).toMatchObject({
      ...{ path_prefix: "/~ada/", fresh: true },
      verify_url: `${service.url}/verify?origin=${encodeURIComponent(origin)}&path_prefix=%2F~ada%2F`,
    });
    expect((await get(`/cert/${passing}`, "text/html")).text).toContain(`Passed: full: ${origin}/~ada/`);
  });

  test("escapes no FAIL of the whole origin by asking for less", async () => {
    const url = `${origin}/~ada/sonnet`;
    await held({ origin, url, ...consent("/") }, FAIL);
    expect(await verified()).toMatchObject({ verified: false, reasons: [{ code: "current_fail" }, {}] });
    expect(await verified("/~ada/")).toMatchObject({ verified: false, reasons: [{ code: "current_fail" }] });
    expect(await board()).toEqual([]);
    await held({ origin, url, ...consent("/~ada/") }, { endedAt: new Date() });
    expect(await verified("/~ada/")).toMatchObject({ verified: true });
    expect(await verified()).toMatchObject({ verified: false, reasons: [{ code: "current_fail" }, {}] });
    expect(await board()).toEqual(["/~ada/"]);
  });
});

test("a wallet is told nothing of exams that others bought of sellers who ask for money to it", async () => {
  const [mine, quoted] = [`0x${"c1".repeat(20)}`, `0x${"c2".repeat(20)}`] as const;
  const { payment } = sampleOrder();
  const origin = "https://quoting.example";
  await held({ origin, payTo: quoted, payment: { ...payment, payer: mine } }, FAIL);
  await held({ origin: "https://quoting2.example", payTo: quoted });
  for (const wallet of [mine, quoted]) expect((await get(`/payee/${wallet}`)).body).toMatchObject({ exams: [] });
  const own = { origin: "https://own.example", payTo: mine };
  await held({ ...own, payment: { ...payment, payer: mine } });
  // A shop may forward its customer's payment for an exam that must fail.
  const forwarded = { origin: "https://scam.example", payTo: mine };
  await held({ ...forwarded, payment: { ...sampleOrder().payment, payer: mine } }, FAIL);
  expect((await get(`/payee/${mine}`)).body).toMatchObject({ exams: [{ result: "pass", origin: own.origin }] });
});

test("what a buyer wrote into the query and the body of its order is in no record, page or evidence", async () => {
  const origin = "https://words.example";
  const words = { url: `${origin}/haiku?q=attackers-words`, body: "attackers-words", method: "POST" } as const;
  const id = await held({ origin, ...words, other: `${origin}/sonnet?attackers-words` });
  const paths = [`/cert/${id}`, `/exam/${id}`, `/cert/${id}/evidence`, `/verify?origin=${origin}`];
  for (const path of paths) expect((await get(path)).text, path).not.toContain("attackers-words");
  expect((await get(`/cert/${id}`, "text/html")).text).not.toContain("attackers-words");
  const sha256 = (text: string) => createHash("sha256").update(text).digest("hex");
  expect((await get(`/cert/${id}`)).body.request).toEqual({
    ...{ method: "POST", url: `${origin}/haiku`, content_type: "application/json", other: `${origin}/sonnet` },
    query_sha256: sha256("q=attackers-words"),
    body_sha256: sha256("attackers-words"),
  });
});
