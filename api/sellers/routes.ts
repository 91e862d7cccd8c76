import type { Context } from "hono";
import { z } from "zod";
import { certUrl } from "../certificates/index.ts";
import { inPath, json, jsonOrPage, optionalInQuery } from "../platform/http/answer.ts";
import { Problem } from "../platform/http/errors.ts";
import { type Clients, clientOf, readJson } from "../platform/http/request.ts";
import { type PaidRoute, paidRoute, type Route } from "../platform/http/route.ts";
import { walletText } from "../platform/http/schema.ts";
import { formatUsd } from "../platform/money.ts";
import { page, wantsHtml } from "../platform/page/page.ts";
import { readWallet } from "../platform/wallet.ts";
import { consentUrl } from "./consent.ts";
import { EXAM_DESCRIPTION, examStatus, examTerms, orderedDocument } from "./exam-document.ts";
import { EXAM_BODY, EXAM_REQUEST, type ExamRequest, METHODS } from "./exam-request.ts";
import type { ExamStore } from "./exam-store.ts";
import type { createFreeExams } from "./free-exam.ts";
import type { Asking } from "./look.ts";
import { EXAM_NETWORK, EXAM_PRICE } from "./products.ts";
import { isExamId } from "./record.ts";
import { EXAM_STATUS, EXAM_TERMS, examId, ORDERED } from "./schemas.ts";
import type { ExamIntake } from "./take-order.ts";
import { renderExamTerms } from "./terms-page.ts";

const BODY = z.strictObject({
  token: z
    .string()
    .regex(/^[0-9a-f]{32}$/)
    .describe("From the operator, with the correction."),
});

const EXPECTED = 'The body must be JSON like {"token": "…"}, with 32 hex digits.';

export interface ExamRouteParts {
  readonly exams: {
    readonly intake: ExamIntake;
    readonly store: ExamStore;
    readonly takeFree: ReturnType<typeof createFreeExams>;
    /** False if no account pays for them. */
    readonly isForSale: boolean;
  };
  readonly baseUrl: string;
  readonly peers: Clients;
}

const NOT_SOLD = "Exams of sellers are not sold here: no account is set up to pay for them.";

export const examRoutes = (parts: ExamRouteParts): readonly Route[] => [
  buyRoute(parts),
  {
    method: "GET",
    path: "/test/seller",
    summary: "What an exam of a seller checks and costs, how to consent to one, and what would be refused",
    parameters: [
      optionalInQuery({ name: "url", description: "A paid endpoint, to look at its quote.", schema: z.string() }),
      optionalInQuery({ name: "method", description: "Its method; GET by default.", schema: z.enum(METHODS) }),
      optionalInQuery({ name: "wallet", description: "The wallet that is to buy the exam.", schema: walletText }),
    ],
    output: jsonOrPage(EXAM_TERMS),
    problems: ["malformed_request", "too_many_requests"],
    handle: (c) => terms(c, parts),
  },
  {
    method: "GET",
    path: "/exam/:id",
    summary: "The status of an exam of a seller, with links to its record and its evidence",
    parameters: [inPath({ name: "id", description: "The exam's id.", schema: examId })],
    output: json(EXAM_STATUS),
    others: { 303: {} },
    problems: ["not_found"],
    handle: (c) => status(c, parts),
  },
  {
    method: "POST",
    path: "/exam/:id/again",
    summary: "Takes the free exam that the operator granted with a correction",
    parameters: [inPath({ name: "id", description: "The corrected exam's id.", schema: examId })],
    body: BODY,
    output: json(ORDERED),
    problems: ["malformed_request", "not_found", "unacceptable", "too_many_requests", "not_available"],
    async handle(c) {
      const { token } = await readJson(c, BODY, EXPECTED);
      const document = await parts.exams.takeFree(c.req.param("id") ?? "", token, clientOf(c, parts.peers));
      return c.json(document, 200, { "cache-control": "no-store" });
    },
  },
];

const buyRoute = ({ exams: { intake, isForSale }, baseUrl }: ExamRouteParts): PaidRoute =>
  paidRoute({
    id: "test.seller",
    method: "POST",
    path: "/test/seller",
    terms: { networks: [EXAM_NETWORK], price: EXAM_PRICE, ...(isForSale ? {} : { closed: NOT_SOLD }) },
    summary: "An exam of a paid x402 endpoint, by a buyer that pays",
    description: EXAM_DESCRIPTION,
    input: EXAM_REQUEST,
    body: EXAM_BODY,
    output: json(ORDERED),
    hooks: { prepare: intake.prepare },
    intake: (input, payer, { nonce }) => intake.admit(input, { payer, nonce }),
    example: { input: { url: "https://seller.example/haiku" }, output: exampleOutput(baseUrl) },
    sell: { immediate: intake.sell },
    privacy: { isRecordUnlisted: true },
  });

function exampleOutput(baseUrl: string) {
  const [id, payTo] = ["6f1c2b7d9e0a4c5f8b3d2e1f0a9c8b7d", "0x5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e"] as const;
  return orderedDocument({ id, origin: "https://seller.example", payTo, amount: 10_000n }, baseUrl);
}

async function terms(c: Context, { exams, baseUrl, peers }: ExamRouteParts): Promise<Response> {
  const common = { ...examTerms(baseUrl), for_sale: exams.isForSale };
  const [url, method, buyer] = ["url", "method", "wallet"].map((name) => c.req.query(name));
  const read = buyer === undefined ? { wallet: null } : readWallet(buyer);
  if ("malformed" in read) throw new Problem("malformed_request", { detail: `wallet: ${read.malformed}` });
  const show = (document: Parameters<typeof renderExamTerms>[0]) =>
    wantsHtml(c) ? page(c, renderExamTerms(document, baseUrl)) : c.json(document, 200, { vary: "Accept" });
  if (url === undefined) return show(common);
  const parsed = EXAM_REQUEST.safeParse({ url, ...(method === undefined ? {} : { method }) });
  if (!parsed.success) {
    const [issue] = parsed.error.issues;
    throw new Problem("malformed_request", { detail: `${issue?.path.join(".")}: ${issue?.message}` });
  }
  return show({
    ...common,
    seller: await seller(exams.intake, parsed.data, { client: clientOf(c, peers), wallet: read.wallet }),
  });
}

const originOf = (url: string): string => (URL.canParse(url) ? new URL(url).origin : "");

async function seller(intake: ExamIntake, request: ExamRequest, asking: Asking) {
  const { file, prospect } = await intake.look(request, asking);
  const origin = originOf(request.url);
  const consent = file && {
    file: { url: consentUrl(origin), line: intake.line(asking.wallet) },
    lines: file.lines.map(({ wallet, prefix, expires }) => ({ wallet, path_prefix: prefix, expires })),
    problems: [...file.faults],
  };
  const common = { url: request.url, origin, ...(consent !== null && { consent }) };
  if ("code" in prospect) return { ...common, refused: prospect, not_now: null };
  const notNow = await intake.wait(request, prospect);
  return {
    ...common,
    refused: null,
    not_now: notNow?.detail ?? null,
    pay_to: prospect.payTo,
    price: formatUsd(prospect.amount),
    path_prefix: prospect.consent.prefix,
  };
}

/** Browsers get the same on the record's page. */
async function status(c: Context, { exams: { store }, baseUrl }: ExamRouteParts): Promise<Response> {
  const id = c.req.param("id") ?? "";
  const exam = isExamId(id) ? await store.get(id) : null;
  if (exam === null) throw new Problem("not_found", { detail: `There is no exam ${id.slice(0, 40)}.` });
  c.header("x-robots-tag", "noindex");
  c.header("vary", "Accept");
  if (wantsHtml(c)) return c.redirect(new URL(certUrl(baseUrl, { id })).pathname, 303);
  return c.json(examStatus(exam, baseUrl), 200, exam.result === null ? { "cache-control": "no-store" } : {});
}
