import { expect, test } from "vitest";
import type { MarkedCertificate } from "../../../api/certificates/certificate.ts";
import { renderCertificatePage } from "../../../api/certificates/pages/certificate-page.ts";
import { FAILING, SAMPLE_NOW, SCAMMED } from "../../support/certificates/samples.ts";

const show = (certificate: MarkedCertificate): string =>
  renderCertificatePage(certificate, { publications: [], places: [], baseUrl: "https://trust.test", now: SAMPLE_NOW });

test("a FAIL says that it counts against the wallet", () => {
  expect(show(SCAMMED)).toMatch(/Failed: Non-conformant.*counts against the wallet until 21 December 2026/s);
});

test("a FAIL of the suite says what was seen, and that it does not count against the wallet", () => {
  const failed = show(FAILING);
  expect(failed).toMatch(/Not counted: Non-conformant.*this FAIL does not count against the wallet/s);
  expect(failed).toContain("31,536,000 s (limit 900 s)");
  expect(failed).not.toContain("until 21 December 2026");
});
