import type { Context } from "hono";
import { z } from "zod";
import { readJson } from "../platform/http/body.ts";
import { type Clients, clientOf } from "../platform/http/client.ts";
import { inPath, json } from "../platform/http/output.ts";
import type { Route } from "../platform/http/route.ts";
import { examId, ORDERED } from "./exam-schemas.ts";
import type { TakeFree } from "./free-exam.ts";

const BODY = z.strictObject({
  token: z
    .string()
    .regex(/^[0-9a-f]{32}$/)
    .describe("From the operator, with the correction."),
});

const EXPECTED = 'The body must be JSON like {"token": "…"}, with 32 hex digits.';

export interface FreeExamRouteParts {
  readonly exams: { readonly takeFree: TakeFree };
  readonly peers: Clients;
}

/** Where the seller takes the exam that came with a correction. */
export const freeExamRoute = (parts: FreeExamRouteParts): Route => ({
  method: "POST",
  path: "/exam/:id/again",
  summary: "Takes the exam free of charge that the operator granted with a correction",
  parameters: [inPath({ name: "id", description: "The corrected exam's id.", schema: examId })],
  body: BODY,
  output: json(ORDERED),
  problems: ["malformed_request", "not_found", "unacceptable", "too_many_requests", "not_available"],
  handle: (c) => again(c, parts),
});

async function again(c: Context, { exams: { takeFree }, peers }: FreeExamRouteParts): Promise<Response> {
  const { token } = await readJson(c, BODY, EXPECTED);
  const document = await takeFree(c.req.param("id") ?? "", token, clientOf(c, peers));
  return c.json(document, 200, { "cache-control": "no-store" });
}
