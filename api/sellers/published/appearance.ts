import { certImageUrl, certUrl, type Preview } from "../../certificates/index.ts";
import { formatUsd } from "../../platform/money.ts";
import { day, jsonLd, longDay, type Markup } from "../../platform/page/html.ts";
import { SITE_NAME } from "../../platform/page/page.ts";
import { type Exam, siteName, siteOf, VALID_DAYS } from "../record.ts";
import type { Placed } from "./document.ts";
import { verdictOf } from "./judge-exams.ts";

/** The current appearance of a seller's record, which its page and its badge share. */
export interface ExamAppearance {
  readonly tone: "pass" | "fail" | "gray";
  /** The word on its seal. */
  readonly word: "PASS" | "FAIL" | "NONE";
  readonly state:
    | "Current"
    | "Not verified"
    | "Failed"
    | "Expired"
    | "Superseded"
    | "Corrected"
    | "Reversed"
    | "Not certified"
    | "Under way";
  readonly sentence: string;
  /** For pictures in caches, so its dates are absolute. */
  readonly short: string;
}

/** Returns the appearance of a published exam. A PASS is green only while no FAIL of the same origin counts. */
export function examAppearance({ exam, state, failing }: Pick<Placed, "exam" | "state" | "failing">): ExamAppearance {
  const { endedAt, validUntil, level } = exam.result;
  const verdict = verdictOf(exam);
  const word = verdict === "pass" ? "PASS" : "FAIL";
  switch (state) {
    case "corrected": {
      const at = exam.correction?.at ?? endedAt;
      const sentence = `The examiner was wrong, and withdrew this ${word} on ${longDay(at)}. The record stays as it was and no longer counts.`;
      return { tone: "gray", word, state: "Corrected", sentence, short: `withdrawn ${day(at)}` };
    }
    case "reversed": {
      const at = exam.reversedAt ?? endedAt;
      const sentence = `A payment that this ${word} depends on was found missing from the chain on ${longDay(at)}. The record stays public and no longer counts.`;
      return { tone: "gray", word, state: "Reversed", sentence, short: `reversed ${day(at)}` };
    }
    case "expired": {
      const sentence = `This ${word} is a true record of its exam, but its ${VALID_DAYS} days ended on ${longDay(validUntil)}. Ask the seller for a fresh one.`;
      return { tone: "gray", word, state: "Expired", sentence, short: `expired ${day(validUntil)}` };
    }
    case "superseded": {
      const sentence = `A newer exam of the same request counts in place of this ${word}. The record stays public.`;
      return { tone: "gray", word, state: "Superseded", sentence, short: `superseded · tested ${day(endedAt)}` };
    }
    case "counts": {
      if (verdict === "fail") {
        const sentence = `This FAIL counts against the seller until ${longDay(validUntil)}, or until the same request passes.`;
        return { tone: "fail", word, state: "Failed", sentence, short: `failed · tested ${day(endedAt)}` };
      }
      if (failing !== undefined) {
        const failed = failing.result.endedAt;
        const sentence = `This exam passed, but the origin is not verified: an exam of another request failed on ${longDay(failed)}, and that FAIL still counts.`;
        return { tone: "fail", word, state: "Not verified", sentence, short: `not verified · FAIL ${day(failed)}` };
      }
      const sentence = `This PASS is fresh and counts until ${longDay(validUntil)}.`;
      return { tone: "pass", word, state: "Current", sentence, short: `${level} · valid until ${day(validUntil)}` };
    }
    default:
      return state satisfies never;
  }
}

/** Returns the appearance of an exam that certifies nothing: under way or interrupted. */
export function uncertified({ result }: Exam): ExamAppearance {
  const nothing = { tone: "gray", word: "NONE" } as const;
  if (result === null)
    return {
      ...nothing,
      state: "Under way",
      sentence: "The exam has not ended yet. Its result will be here within three minutes.",
      short: "exam under way",
    };
  return {
    ...nothing,
    state: "Not certified",
    sentence: "Nothing is certified here, for or against the seller. This page can only be found by its id.",
    short: "nothing certified",
  };
}

/** Returns the headline on the page and the picture of a published exam. */
export function examHeadline({ result }: Placed["exam"], { state }: Pick<ExamAppearance, "state">): string {
  if (state !== "Current") return state;
  return result.level === "full" ? "Passed: full" : "Passed: safe";
}

/** Returns the picture of a seller's certificate. It contains no text from the seller. */
export function sellerPreview(placed: Placed): Preview {
  const { exam } = placed;
  const { order, result } = exam;
  const shown = examAppearance(placed);
  const fact = `Examined with ${formatUsd(result.spent ?? 0n)} USDC.`;
  return {
    id: order.id,
    shown,
    headline: examHeadline(exam, shown),
    title: "Exam of a seller",
    subject: siteName(siteOf(order)),
    fact,
  };
}

/** Returns the same facts for programs that read pages. */
export function sellerLinkedData({ exam }: Placed, description: string, baseUrl: string): Markup {
  const { order, result } = exam;
  return jsonLd({
    "@context": "https://schema.org",
    "@type": verdictOf(exam) === "pass" ? "Certification" : "Report",
    "@id": certUrl(baseUrl, order),
    url: certUrl(baseUrl, order),
    name: `Exam of a seller: ${result.level ?? "failed"}`,
    description,
    identifier: order.id,
    datePublished: result.endedAt.toISOString(),
    expires: result.validUntil.toISOString(),
    about: { "@type": "WebSite", url: siteName(siteOf(order)) },
    image: certImageUrl(baseUrl, order),
    publisher: { "@type": "Organization", name: SITE_NAME, url: baseUrl },
  });
}
