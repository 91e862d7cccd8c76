import { certImageUrl, certUrl } from "../../certificates/links.ts";
import type { Preview } from "../../certificates/og-image.ts";
import { formatUsd } from "../../platform/money.ts";
import { jsonLd, type Markup } from "../../platform/page/html.ts";
import { SITE_NAME } from "../../platform/page/page.ts";
import { siteName, siteOf } from "../record.ts";
import { type ExamAppearance, examAppearance } from "./appearance.ts";
import type { Placed } from "./document.ts";
import { verdictOf } from "./standing.ts";

/** What is in large letters on the page and the picture of a published exam. */
export function examHeadline({ result }: Placed["exam"], { state }: Pick<ExamAppearance, "state">): string {
  if (state !== "Current") return state;
  return result.level === "full" ? "Passed: full" : "Passed: safe";
}

/** The picture of a seller's certificate. The seller's own words are not in it. */
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

/** The same for programs that read pages. */
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
    expires: (result.validUntil ?? result.endedAt).toISOString(),
    about: { "@type": "WebSite", url: siteName(siteOf(order)) },
    image: certImageUrl(baseUrl, order),
    publisher: { "@type": "Organization", name: SITE_NAME, url: baseUrl },
  });
}
