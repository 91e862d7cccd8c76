import { createHash } from "node:crypto";
import { afterEach, describe, expect, test } from "vitest";
import { activityEntry } from "../../../api/certificates/activity.ts";
import { renderBadge } from "../../../api/certificates/appearance.ts";
import type { MarkedCertificate } from "../../../api/certificates/certificate.ts";
import { badgeMarkdown } from "../../../api/certificates/links.ts";
import { renderCertificatePage } from "../../../api/certificates/pages/certificate-page.ts";
import { renderVerification } from "../../../api/certificates/pages/verification-page.ts";
import { type VerificationRecord, verificationRecord } from "../../../api/certificates/verification.ts";
import { renderStatus } from "../../../api/operations/status-page.ts";
import {
  explorerAddressUrl,
  explorerTransactionUrl,
  linkLocally,
  sampleRpcUrl,
} from "../../../api/platform/networks.ts";
import { highlight, type Language } from "../../../api/platform/page/highlight.ts";
import { CONTENT_SECURITY_POLICY } from "../../../api/platform/page/page.ts";
import { renderProblem } from "../../../api/site/error-page.ts";
import { type Figures, renderHome } from "../../../api/site/home-page.ts";
import { STATUS } from "../../support/browser/sample-pages.ts";
import { EXPIRED, FAILING, HOSTILE, PASSING, REVERSED, SAMPLE_NOW } from "../../support/certificates/samples.ts";

const baseUrl = "https://trust.test";
const now = SAMPLE_NOW;
const HOME = { baseUrl, menu: [], reads: [], now };
const FIGURES: Figures = { certified: 12, certificates: 1_234, verdicts: 56, escrowed: 7_890_000n };
const VERIFICATION = verificationRecord(
  {
    wallet: PASSING.wallet,
    certificates: [PASSING, EXPIRED],
    activity: {
      ...{ scope: "full", firstBlock: 31_000_000, firstDay: "2026-08-27", lastDay: "2026-11-24" },
      ...{ settledPayments: 1204, distinctCounterparties: 37, lastSeenDays: 1 },
    },
  },
  { baseUrl: "http://trust.test", scorePrice: 100_000n },
  SAMPLE_NOW,
);
const show = (certificate: MarkedCertificate, at = now): string =>
  renderCertificatePage(certificate, { publications: [], places: [], baseUrl, now: at });

const TESTED = { issued: "2026-11-22T10:00:00.000Z", valid_until: "2026-12-22T10:00:00.000Z" };

/** A reason against a wallet, with the id of the certificate that it is about. */
const reason = (text: string, id: string | null): VerificationRecord["reasons"][number] =>
  id === null
    ? { code: "never_tested", text, product: null, issued: null, valid_until: null, cert_url: null }
    : { code: "current_fail", text, product: "basic", ...TESTED, cert_url: `${baseUrl}/cert/${id}` };

/** Every inline block of one kind, without its tags. */
const inline = (page: string, opening: string): readonly string[] =>
  page
    .split(opening)
    .slice(1)
    .map((rest) => rest.slice(0, rest.indexOf("</")));

describe("certificate page", () => {
  const page = show(PASSING);

  test.each([
    ["level", "Passed: Conformant"],
    ["wallet", PASSING.wallet],
    ["expiry date", "21 December 2026, 09:30 UTC"],
    ["amount", "0.75 USDC"],
    ["payee", PASSING.settlement.payTo],
    ["explorer link", `href="https://basescan.org/tx/${PASSING.settlement.transaction}"`],
    ["verification link", `${baseUrl}/verify?wallet=${PASSING.wallet}`],
    ["JSON link", `${baseUrl}/cert/${PASSING.id}?format=json`],
    ["README snippet", badgeMarkdown(baseUrl, PASSING)],
  ])("The page shows the %s", (_, text) => expect(page).toContain(text));

  test("The page has a canonical URL and an image for link previews", () => {
    expect(page).toContain(`<link rel="canonical" href="${baseUrl}/cert/${PASSING.id}">`);
    expect(page).toContain(`<meta property="og:image" content="${baseUrl}/cert/${PASSING.id}/og.png">`);
  });

  test("The page contains its record as JSON-LD", () => {
    const [block = ""] = inline(page, '<script type="application/ld+json">');
    expect(JSON.parse(block)).toMatchObject({
      "@type": "Certification",
      identifier: PASSING.id,
      datePublished: "2026-11-21T09:30:00.000Z",
      expires: "2026-12-21T09:30:00.000Z",
    });
  });

  test("The page of an expired certificate has the end of its 30 days", () => {
    expect(show(EXPIRED)).toContain("its 30 days ended on 1 October 2026");
  });

  test("The page of a reversed certificate states the reversal", () => {
    const reversed = show(REVERSED);
    expect(reversed).toContain("missing from the chain on 22 November 2026");
    expect(reversed).toContain("Reversed PASS: ");
    expect(reversed).not.toContain("Anyone can check that on-chain");
  });

  test("An unknown check and an unknown fact are shown by name", () => {
    const detected = { ...PASSING.detected, bait_signed: false };
    const unknown = show({ ...PASSING, checks: { bait_unsigned: "pass" }, detected });
    expect(unknown).toContain("Bait unsigned");
    expect(unknown).toContain("<dt>Bait signed</dt><dd>No</dd>");
  });
});

describe("hostile text", () => {
  const hostile: MarkedCertificate = {
    ...PASSING,
    level: HOSTILE,
    checks: { [HOSTILE]: "fail" },
    detected: { ...PASSING.detected, nonce: HOSTILE, asset: HOSTILE },
  };
  const certs = VERIFICATION.certs.map((one) => ({ ...one, level: HOSTILE, cert_url: HOSTILE }));
  const pages = {
    certificate: show(hostile),
    home: renderHome({
      reads: [{ path: "/x", summary: HOSTILE }],
      baseUrl,
      menu: [{ id: "x", method: HOSTILE, path: HOSTILE, price: HOSTILE, network: "eip155:8453", summary: HOSTILE }],
      figures: FIGURES,
      now,
    }),
    status: renderStatus({ ...STATUS, senders: STATUS.senders.map((one) => ({ ...one, address: HOSTILE as "0x" })) }),
    verification: renderVerification({
      ...VERIFICATION,
      verified_means: HOSTILE,
      certs,
      reasons: [reason(HOSTILE, HOSTILE)],
    }),
    problem: renderProblem({ status: 404, title: HOSTILE, detail: HOSTILE, request_id: HOSTILE }),
  };

  test.each(Object.entries(pages))("Hostile text is escaped on the %s page", (_, page) => {
    expect(page).not.toContain("<script>alert");
    expect(page).not.toContain("<img src=x");
    expect(page).toContain("&lt;img src=x onerror=&#39;alert(1)&#39;&gt;&amp;amp;");
  });

  test("Hostile text is escaped in JSON-LD and parses back unchanged", () => {
    const [block = ""] = pages.certificate.split('<script type="application/ld+json">').slice(1);
    const document: unknown = JSON.parse(block.slice(0, block.indexOf("</script>")));
    expect(document).toMatchObject({ name: `Full payment suite: ${HOSTILE}` });
  });

  test("Hostile text is escaped in a badge", () => {
    expect(renderBadge(hostile, now)).not.toContain("<script");
  });
});

describe("content security policy", () => {
  const allowed = (kind: string, text: string): boolean =>
    CONTENT_SECURITY_POLICY.includes(`${kind} 'sha256-${createHash("sha256").update(text).digest("base64")}'`);

  test.each([
    ["certificate", show(PASSING)],
    ["home", renderHome({ ...HOME, figures: FIGURES })],
  ])("The policy allows only the style and the script of the %s page, by hash", (_, page) => {
    expect(inline(page, "<style>").map((text) => allowed("style-src", text))).toEqual([true]);
    expect(inline(page, "<script>").map((text) => allowed("script-src", text))).toEqual([true]);
    expect(page).not.toMatch(/ style="| on[a-z]+="/);
  });

  test("A page with nothing to copy has no script", () => {
    expect(renderStatus(STATUS)).not.toContain("<script");
  });
});

test("The home page shows the service's totals and marks unknown ones as unavailable", () => {
  const shown = (figures: typeof FIGURES) =>
    [...renderHome({ ...HOME, figures }).matchAll(/<dt>([^<]+)<\/dt><dd>(.*?)<\/dd>/g)].map(
      ([, name, value]) => `${name}: ${value?.replace(/<[^>]+>/g, "")}`,
    );
  expect(shown(FIGURES)).toEqual([
    "Certified agents: 12",
    "Certificates issued: 1,234",
    "Verdicts signed: 56",
    "USDC in escrow: 7.89",
  ]);
  expect(shown({ certified: 0, certificates: null, verdicts: null, escrowed: null })).toEqual([
    "Certified agents: 0",
    "Certificates issued: unavailable",
    "Verdicts signed: unavailable",
    "USDC in escrow: unavailable",
  ]);
});

describe("verification page", () => {
  test.each([
    ["Verified", { tested: true, verified: true }],
    ["Not verified", { tested: true, verified: false }],
    ["Not tested", { tested: false, verified: false, certs: [] }],
  ])("The page's title is: %s", (words, status) => {
    expect(renderVerification({ ...VERIFICATION, ...status })).toContain(`<title>${words}: ${VERIFICATION.wallet}`);
  });

  test("The page of an unverified wallet shows the reasons with their evidence instead of the meaning of verified", () => {
    const refused = (...reasons: ReturnType<typeof reason>[]) =>
      renderVerification({ ...VERIFICATION, verified: false, reasons });
    const one = refused(reason("Current FAIL: basic payment test.", FAILING.id));
    expect(one).toContain(
      `Current FAIL: basic payment test. <a href="${baseUrl}/cert/${FAILING.id}">See the certificate from 22 November 2026</a>.`,
    );
    expect(one).toContain('<meta name="description" content="Current FAIL: basic payment test.">');
    expect(one).not.toContain(VERIFICATION.verified_means);
    expect(refused(reason("Never tested.", null))).toContain('<p class="state">Never tested.</p>');
    const six = refused(...[1, 2, 3, 4, 5, 6].map((number) => reason(`Current FAIL number ${number}.`, `${number}`)));
    expect(six).toContain("number 5");
    expect(six).not.toContain("number 6");
    expect(six).toContain("And 1 more");
  });

  test("An unseen wallet and unknown activity are shown as such", () => {
    const { activity } = VERIFICATION;
    const unseen = { settled_payments: 0, distinct_counterparties: 0, last_seen_days: null } as const;
    expect(renderVerification({ ...VERIFICATION, activity: { ...activity, ...unseen } as typeof activity })).toContain(
      "<dd>not in this period</dd>",
    );
    expect(renderVerification({ ...VERIFICATION, activity: activityEntry(null) })).toMatch(/temporarily unavailable/i);
  });
});

describe("highlighted code", () => {
  const shown = (text: string, language: Language) => highlight(text, language).toString();
  const plain = (markup: string) => markup.replaceAll(/<\/?span[^>]*>/g, "");

  test.each([
    ["javascript", 'const a = "b"; // c', '<span class="kw">const</span> a = <span class="str">&quot;b&quot;</span>; '],
    // biome-ignore lint/suspicious/noTemplateCurlyInString: the highlighted code contains one
    ["typescript", "f(`x${a}`)", '<span class="fn">f</span>(<span class="str">`</span><span class="str">x</span>${a}'],
    ["bash", "curl -i x # y", '<span class="fn">curl</span> -i x <span class="com"># y</span>'],
    ["json", '{"a": 1}', '{<span class="fn">&quot;a&quot;</span>: <span class="num">1</span>}'],
    ["yaml", "on: push", '<span class="kw">on</span>: push'],
    ["solidity", "contract Deal {}", '<span class="kw">contract</span> <span class="fn">Deal</span> {}'],
  ] as const)("%s is highlighted: %s", (language, text, markup) => {
    expect(shown(text, language)).toContain(markup);
  });

  test.each(["bash", "javascript", "json", "solidity", "typescript", "yaml"] as const)(
    "Hostile text in %s is shown verbatim and adds no markup",
    (language) => {
      const markup = shown(`"${HOSTILE}" // ${HOSTILE}`, language);
      expect(plain(markup)).not.toMatch(/[<>]/);
      const tags = markup.match(/<[^>]*>/g) ?? [];
      expect(tags.filter((tag) => !/^<(\/span|span class="(kw|str|num|fn|com)")>$/.test(tag))).toEqual([]);
      expect(plain(markup)).toContain("&lt;img src=x onerror=&#39;alert(1)&#39;&gt;&amp;amp;");
    },
  );
});

describe("links to the network", () => {
  const [HASH, WALLET] = [`0x${"ab".repeat(32)}`, `0x${"cd".repeat(20)}`];

  afterEach(() => linkLocally(null));

  test("Links point to the network's explorer, or to the records of a local instance", () => {
    expect(explorerTransactionUrl("eip155:8453", HASH)).toBe(`https://basescan.org/tx/${HASH}`);
    expect(explorerAddressUrl("eip155:84532", WALLET)).toBe(`https://sepolia.basescan.org/address/${WALLET}`);
    linkLocally("http://localhost:4020");
    expect(explorerTransactionUrl("eip155:8453", HASH)).toBe(`http://localhost:4020/receipt?transaction=${HASH}`);
    expect(explorerAddressUrl("eip155:84532", WALLET)).toBe(`http://localhost:4020/verify?wallet=${WALLET}`);
  });

  test("Code samples use a public node, or the node of a local instance", () => {
    expect(sampleRpcUrl("eip155:8453")).toBe("https://mainnet.base.org");
    linkLocally("http://localhost:4020", { "eip155:8453": "http://127.0.0.1:8545" });
    expect(sampleRpcUrl("eip155:8453")).toBe("http://127.0.0.1:8545");
    expect(sampleRpcUrl("eip155:84532")).toBe("https://sepolia.base.org");
  });
});
