import type { Address } from "viem";
import { keccak256, stringToBytes } from "viem";
import { describe, expect, test } from "vitest";
import {
  type AttestedVerdict,
  dealRefOf,
  encodeEvaluate,
  evaluatorOf,
  jobTerms,
  VerdictRefused,
} from "../../../packages/escrow/src/index.ts";

const MAKER: Address = "0x1111111111111111111111111111111111111111";
const JOBS: Address = "0x2222222222222222222222222222222222222222";
const HASH = "ab".repeat(32);
const NOON = 1_800_000_000;
const TIMES = { deliverBy: NOON, rejectFrom: NOON, expiredAt: NOON + 3_601 };
const terms = jobTerms(HASH, TIMES);
const place = { chainId: 8453, evaluator: evaluatorOf(MAKER, terms), jobs: JOBS, jobId: 7n };

const verdictOf = (outcome: string, issuedAt = NOON, dealRef: string = dealRefOf(place)): AttestedVerdict => ({
  attestation: {
    message: {
      id: "0".repeat(32),
      outcome,
      conditionsSha256: `0x${HASH}`,
      dealRefHash: keccak256(stringToBytes(dealRef)),
      issuedAt,
    },
    signature: "0x",
  },
});
const evaluation = (verdict: AttestedVerdict) => ({ ...place, maker: MAKER, terms, verdict });
const reasonOf = (verdict: AttestedVerdict, now = NOON) => {
  try {
    encodeEvaluate(evaluation(verdict), now);
    return null;
  } catch (error) {
    return error instanceof VerdictRefused ? error.reason : error;
  }
};

describe("the terms of a job", () => {
  test("The hash is accepted with and without 0x", () => {
    expect(jobTerms(`0x${HASH.toUpperCase()}`, TIMES)).toEqual({ conditionsSha256: `0x${HASH}`, rejectFrom: NOON });
    for (const wrong of ["", "0x", HASH.slice(1), `${HASH}0`, "order-4711"])
      expect(() => jobTerms(wrong, TIMES)).toThrow("64 hexadecimal digits");
  });

  test.each([
    ["a zero rejectFrom, which allows a rejection before the delivery", { rejectFrom: 0 }, "Unix timestamps"],
    ["a rejection before the delivery is due", { deliverBy: NOON + 1 }, "must not be after rejectFrom"],
    ["an hour or less for a verdict", { expiredAt: NOON + 3_600 }, "more than an hour after rejectFrom"],
    ["a job that has already expired then", { expiredAt: NOON - 1 }, "more than an hour after rejectFrom"],
    ["a fraction of a second", { rejectFrom: NOON + 0.5 }, "Unix timestamps"],
  ])("Terms with %s are refused", (_, wrong, reason) => {
    expect(() => jobTerms(HASH, { ...TIMES, ...wrong })).toThrow(reason);
    expect(() => jobTerms(HASH, { ...TIMES, ...wrong })).toThrow(RangeError);
  });
});

describe("a verdict for a job", () => {
  test("It is encoded if the contract would accept it", () => {
    for (const outcome of ["release", "refund"]) expect(reasonOf(verdictOf(outcome))).toBe(null);
    expect(reasonOf(verdictOf("release", NOON - 1))).toBe(null);
    expect(reasonOf(verdictOf("release"), NOON + 86_400)).toBe(null);
  });

  test("It is refused with the contract's own error before anything is sent", () => {
    const others = { ...terms, conditionsSha256: `0x${"cd".repeat(32)}` } as const;
    expect(() => encodeEvaluate({ ...evaluation(verdictOf("release")), terms: others }, NOON)).toThrow(
      expect.objectContaining({ reason: "WrongConditions" }),
    );
    expect(reasonOf(verdictOf("release", NOON, "order-4711"))).toBe("WrongDeal");
    expect(reasonOf(verdictOf("release"), NOON + 86_401)).toBe("VerdictExpired");
    expect(reasonOf(verdictOf("escalate"))).toBe("NothingDecided");
    expect(reasonOf(verdictOf("approve"))).toBe("NothingDecided");
    expect(reasonOf(verdictOf("refund", NOON - 1))).toBe("IssuedTooEarly");
  });

  test("Its deal reference names one job of one contract on one chain, under one set of terms", () => {
    const changes = [
      { chainId: 84_532 },
      { jobs: MAKER },
      { jobId: 8n },
      { evaluator: evaluatorOf(MAKER, { ...terms, rejectFrom: NOON + 1 }) },
      { evaluator: evaluatorOf(JOBS, terms) },
    ];
    const refs = changes.map((change) => dealRefOf({ ...place, ...change }));
    expect(new Set([dealRefOf(place), ...refs]).size).toBe(6);
  });
});
