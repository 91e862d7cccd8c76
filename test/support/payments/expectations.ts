import { decodePaymentResponseHeader } from "@x402/core/http";
import { expect } from "vitest";
import { withClient } from "../../../scripts/embedded/postgres.ts";
import type { TestService } from "../service/service.ts";
import { type Answer, challengeOf } from "./requests.ts";
import { witnessed } from "./signing.ts";

/** Expects a 402 with its challenge. Returns the reason for the refusal. */
export function expectPaymentRequired(answer: Answer): string {
  expect({ status: answer.status, body: answer.body }).toMatchObject({ status: 402, body: { x402Version: 1 } });
  expect(answer.headers.get("payment-response")).toBeNull();
  expect(challengeOf(answer).error).toBe(answer.body.error);
  return String(answer.body.error);
}

/** Returns the diagnostic of a 402. The header has the same one, except for errors that do not fit. */
export function diagnosticOf(answer: Answer): unknown {
  const { diagnostic } = answer.body.extensions as { diagnostic: Record<string, unknown> };
  const { errors: _, ...code } = diagnostic;
  expect(challengeOf(answer).extensions?.diagnostic).toMatchObject(code);
  return diagnostic;
}

/** Expects a problem from the catalog in RFC 9457 form, with a pending settlement if its detail reports one. */
export function expectProblem(answer: Answer, status: number, code: string): void {
  expect({ status: answer.status, ...answer.body }).toMatchObject({
    status,
    code,
    detail: expect.any(String),
    request_id: expect.any(String),
  });
  expect(answer.headers.get("content-type")).toBe("application/problem+json");
  const isPending =
    code === "payment_pending" && /not settled yet|cannot currently tell/.test(String(answer.body.detail));
  const settlement = answer.headers.get("payment-response");
  const pending = {
    success: false,
    errorReason: "settlement_pending",
    errorMessage: answer.body.detail,
    transaction: "",
    network: expect.any(String),
    payer: expect.stringMatching(/^0x[0-9a-f]{40}$/),
  };
  expect(settlement && decodePaymentResponseHeader(settlement)).toEqual(isPending ? pending : null);
}

const DUMP =
  "SELECT payment::text AS row FROM payment UNION ALL SELECT relay::text FROM relay UNION ALL SELECT certificate::text FROM certificate";

/** Expects that no response, log line, or database row contains r or s of any signature made in this file. */
export async function expectNoSignatureAnywhere(service: TestService): Promise<void> {
  const rows = await withClient(service.database.ownerUrl, async (client) =>
    (await client.query<{ row: string }>(DUMP)).rows.map(({ row }) => row),
  );
  const secrets = witnessed.signatures.flatMap((s) => [s.slice(2, 66), s.slice(66, 130)]);
  expect(secrets.length).toBeGreaterThan(0);
  const places = Object.entries({ answers: witnessed.answers, logs: service.logged, rows });
  const leaks = places.flatMap(([place, texts]) =>
    texts.flatMap((text) => {
      const plain = decoded(text);
      return secrets.some((secret) => plain.includes(secret)) ? [{ place, text }] : [];
    }),
  );
  expect(leaks).toEqual([]);
}

/** The text in lower case, with its base64 words also decoded. */
const decoded = (text: string): string =>
  `${text}${(text.match(/[A-Za-z0-9+/=]{64,}/g) ?? []).map((word) => Buffer.from(word, "base64").toString("latin1")).join("")}`.toLowerCase();
