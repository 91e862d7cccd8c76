import { beforeAll, describe, expect, test } from "vitest";
import { appearance, renderBadge } from "../../../api/certificates/appearance.ts";
import { certificatePreview, createOgRenderer } from "../../../api/certificates/og-image.ts";
import { OG_FONT_FILES } from "../../support/browser/sample-pages.ts";
import {
  EXPIRED,
  FAILING,
  HOSTILE,
  PASSING,
  REVERSED,
  SAMPLE_NOW,
  SCAMMED,
  UNVERIFIED,
} from "../../support/certificates/samples.ts";
import { startTestChain } from "../../support/chain/chain.ts";
import { forFile } from "../../support/for-file.ts";
import { expectProblem } from "../../support/payments/expectations.ts";
import { send } from "../../support/payments/requests.ts";
import { freshDatabase } from "../../support/service/database.ts";
import { startDatabaseLink } from "../../support/service/database-link.ts";
import { startService } from "../../support/service/service.ts";

const now = SAMPLE_NOW;

describe("Freshness", () => {
  const end = PASSING.validUntil.getTime();
  test.each([
    ["current one millisecond before 30 days", new Date(end - 1), "Current"],
    ["expired at 30 days", new Date(end), "Expired"],
  ])("A certificate is %s", (_, at, state) => expect(appearance(PASSING, at).state).toBe(state));

  test("A certificate that is reversed and expired is shown as reversed", () => {
    expect(appearance({ ...EXPIRED, reversedAt: now }, now).state).toBe("Reversed");
  });
});

describe("The badge", () => {
  test.each([
    ["a fresh PASS", PASSING, "conformant · valid until 2026-12-21", "#16704c"],
    ["a fresh FAIL", SCAMMED, "failed · tested 2026-11-21", "#b3261e"],
    ["a fresh PASS of a wallet with a FAIL", UNVERIFIED, "not verified · FAIL in scam 2026-11-21", "#b3261e"],
    ["a FAIL of the suite", FAILING, "not counted · tested 2026-11-21", "#646c75"],
    ["an expired PASS", EXPIRED, "expired 2026-10-01", "#646c75"],
    ["a reversed PASS", REVERSED, "reversed 2026-11-22", "#646c75"],
  ])("The badge of %s has its message, an absolute date, and its color", (...[_, certificate, message, color]) => {
    const svg = renderBadge(certificate, now);
    expect(svg).toContain(message);
    expect(svg).toContain(`fill="${color}"`);
  });

  test("The badge is a labeled image with a title", () => {
    const svg = renderBadge(PASSING, now);
    const name = "agent payments suite: conformant · valid until 2026-12-21";
    expect(svg).toMatch(/^<svg /);
    for (const part of ['role="img"', `aria-label="${name}"`, `<title>${name}</title>`]) expect(svg).toContain(part);
  });
});

describe("The link preview picture", () => {
  const render = createOgRenderer(OG_FONT_FILES);

  test.each([
    ["a certificate", PASSING],
    ["hostile text", { ...PASSING, level: HOSTILE }],
  ])("The picture of %s is a PNG of 1200 by 630 pixels", (_, certificate) => {
    const png = Buffer.from(render(certificatePreview(certificate, now)));
    expect(png.subarray(0, 8).toString("hex")).toBe("89504e470d0a1a0a");
    expect([png.readUInt32BE(16), png.readUInt32BE(20)]).toEqual([1200, 630]);
  });

  test("The text is drawn only with the given fonts", () => {
    const preview = certificatePreview(PASSING, now);
    expect(Buffer.from(render(preview)).equals(createOgRenderer([])(preview))).toBe(false);
  });
});

describe("Picture routes", async () => {
  const ID = "0123456789abcdef";
  const PICTURES = [
    [`/badge/${ID}.svg`, "image/svg+xml"],
    ["/badge/nonsense", "image/svg+xml"],
    [`/cert/${ID}/og.png`, "image/png"],
  ] as const;
  const GRAY = 'fill="#646c75"';

  const chain = await forFile(startTestChain());
  const database = await freshDatabase();
  const link = await startDatabaseLink(database.apiUrl);
  const config = { databaseUrl: link.url, rateLimitPerMinute: 20 };
  const service = await forFile(startService({ chain, database, config, jobs: false }));

  async function expectPicture(path: string, type: string, status: number) {
    const answer = await send(service.url + path);
    expect([path, answer.status, answer.headers.get("content-type")?.split(";")[0]]).toEqual([path, status, type]);
    expect(Number(/^public, max-age=(\d+)$/.exec(answer.headers.get("cache-control") ?? "")?.[1])).toBeLessThanOrEqual(
      300,
    );
    if (path.startsWith("/badge")) expect(answer.text).toContain(GRAY);
    return answer;
  }

  test("The picture of an unknown certificate is a picture with 404", async () => {
    for (const [path, type] of PICTURES) await expectPicture(path, type, 404);
  });

  describe("An unreachable database", () => {
    beforeAll(() => link.stop());

    test("Without the database, pictures are gray and cached for a minute, and other routes return 503", async () => {
      for (const [path, type] of PICTURES.filter(([path]) => path.includes(ID))) {
        const { headers } = await expectPicture(path, type, 200);
        expect(headers.get("cache-control")).toBe("public, max-age=60");
      }
      expectProblem(await send(`${service.url}/cert/${ID}`), 503, "not_available");
    });
  });

  describe("Requests above the rate limit", () => {
    beforeAll(async () => {
      for (let sent = 0; sent < 20; sent += 1) await send(`${service.url}/inspect`);
    });

    test("Above the rate limit, picture routes still return pictures, and other routes return 429", async () => {
      const pictures = [
        ...PICTURES,
        ["/favicon.svg", "image/svg+xml"],
        ["/apple-touch-icon.png", "image/png"],
      ] as const;
      for (const [path, type] of pictures) {
        const { headers } = await expectPicture(path, type, 200);
        expect(Number(headers.get("retry-after"))).toBeGreaterThan(0);
      }
      expectProblem(await send(`${service.url}/inspect`), 429, "too_many_requests");
    });
  });
});
