import { createHash } from "node:crypto";
import type { Hex } from "../../../api/platform/wallet.ts";
import type { NewResult } from "../../../api/sellers/exam-store.ts";
import type { KeptExchange } from "../../../api/sellers/record.ts";
import { CHECKS, FINDINGS, type FindingCode } from "../../../packages/seller-check/src/exam/vocabulary.ts";
import { evidenceText } from "./samples.ts";

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

/** The result of a whole exam, whose seller writes whatever it likes. */
export const EXAMINED: Pick<NewResult, "checks" | "evidence" | "evidenceSha256" | "settlements"> = {
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
              code: `${check}.${FINDINGS[check][0]}` as FindingCode,
              statement: "A payment as quoted is answered with the result, and got 200",
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
