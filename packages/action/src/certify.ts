import { Failure, formatUsd } from "./fields.ts";
import type { Certify } from "./inputs.ts";
import { buy, walletOf } from "./payment.ts";
import { currentFails, notVerified, readRecord, recordUrl, type WalletRecord } from "./record.ts";
import type { Report } from "./report.ts";

const DAY_MS = 86_400_000;

/**
 * Buys the test's certificate, unless the wallet already has one that lasts longer than `renewWithinDays`, or a FAIL
 * counts against it, because then no certificate makes it verified. The step fails unless the wallet is verified in the
 * end.
 */
export async function certify({ baseUrl, test, maxPrice, renewWithinDays, privateKey }: Certify): Promise<Report> {
  const wallet = walletOf(privateKey);
  const url = recordUrl(baseUrl, wallet);
  const before = await readRecord(baseUrl, wallet);
  const lasting = lastingCertificate(before, test, Date.now() + renewWithinDays * DAY_MS);
  if (lasting === null && currentFails(before).length > 0) return withheld(notVerified(before, { url, wallet }), url);
  const bought = lasting === null ? await buyCertificate() : { ...lasting, passed: true, paid: 0n };
  const after = await readRecord(baseUrl, wallet);
  const { certUrl, badge, passed, paid } = bought;
  const done = lasting === null ? `paid ${formatUsd(paid)} USDC` : "still fresh, so nothing was paid";
  const title = !passed ? "Failed" : after.verified ? "Certified" : "Not verified";
  return {
    outputs: {
      verified: String(after.verified),
      "record-url": url,
      "cert-url": certUrl,
      "badge-markdown": badge,
      paid: formatUsd(paid),
    },
    summary: `### ${title}: \`${wallet}\`\n\nTest \`${test}\`: ${done}. [Certificate](${certUrl}), [record](${url})\n\n${badge}`,
    failure: failureOf(passed),
  };

  function failureOf(hasPassed: boolean): string | null {
    if (!hasPassed) return `The wallet failed the ${test} test: ${certUrl}`;
    return after.verified ? null : notVerified(after, { url, wallet });
  }

  async function buyCertificate() {
    const { body, paid } = await buy({ url: `${baseUrl}/test/${test}`, maxPrice, privateKey });
    const { verdict, cert_url, badge_markdown } = body as Record<string, unknown>;
    if (!isOurs(cert_url, baseUrl))
      throw new Failure(`${formatUsd(paid)} USDC was paid, but the answer names no certificate from ${baseUrl}.`);
    return { certUrl: cert_url, badge: String(badge_markdown), passed: verdict === "pass", paid };
  }
}

/** Reports that no certificate was bought, because it would not make the wallet verified. */
const withheld = (why: string, url: string): Report => ({
  outputs: { verified: "false", "record-url": url, "cert-url": "", "badge-markdown": "", paid: formatUsd(0n) },
  summary: `### Not verified\n\n${why}. Nothing was paid.`,
  failure: `${why}. Nothing was paid: no certificate makes up for a FAIL.`,
});

const isOurs = (url: unknown, baseUrl: string): url is string =>
  typeof url === "string" && url.startsWith(`${baseUrl}/cert/`) && /\/[0-9a-f]{16}$/.test(url);

/** Returns the fresh PASS of the test that is valid beyond the given instant (Unix milliseconds), or null. */
function lastingCertificate({ certs }: WalletRecord, test: string, beyond: number) {
  const found = certs.find(
    ({ product, result, fresh, valid_until }) =>
      product === test && result === "pass" && fresh && Date.parse(valid_until) > beyond,
  );
  return found === undefined
    ? null
    : { certUrl: found.cert_url, badge: `[![Agent payment certificate](${found.badge_url})](${found.cert_url})` };
}
