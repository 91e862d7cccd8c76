import { beforeAll, describe, expect, test } from "vitest";
import { startTestChain } from "../../support/chain/chain.ts";
import { forFile } from "../../support/for-file.ts";
import { expectProblem } from "../../support/payments/expectations.ts";
import { send } from "../../support/payments/requests.ts";
import { freshDatabase } from "../../support/service/database.ts";
import { startDatabaseLink } from "../../support/service/database-link.ts";
import { startService } from "../../support/service/service.ts";

const ID = "0123456789abcdef";
const PICTURES = [
  [`/badge/${ID}.svg`, "image/svg+xml"],
  ["/badge/nonsense", "image/svg+xml"],
  [`/cert/${ID}/og.png`, "image/png"],
] as const;
const GREY = 'fill="#646c75"';

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
  if (path.startsWith("/badge")) expect(answer.text).toContain(GREY);
  return answer;
}

test("a picture of nothing is a picture that says so", async () => {
  for (const [path, type] of PICTURES) await expectPicture(path, type, 404);
});

describe("while the database is away", () => {
  beforeAll(() => link.stop());

  test("a picture is grey and kept for a minute; the rest of the site answers 503", async () => {
    for (const [path, type] of PICTURES.filter(([path]) => path.includes(ID))) {
      const { headers } = await expectPicture(path, type, 200);
      expect(headers.get("cache-control")).toBe("public, max-age=60");
    }
    expectProblem(await send(`${service.url}/cert/${ID}`), 503, "not_available");
  });
});

describe("above the limit on requests", () => {
  beforeAll(async () => {
    for (let sent = 0; sent < 20; sent += 1) await send(`${service.url}/inspect`);
  });

  test("a picture is a picture, and other answers are 429", async () => {
    const pictures = [...PICTURES, ["/favicon.svg", "image/svg+xml"], ["/apple-touch-icon.png", "image/png"]] as const;
    for (const [path, type] of pictures) {
      const { headers } = await expectPicture(path, type, 200);
      expect(Number(headers.get("retry-after"))).toBeGreaterThan(0);
    }
    expectProblem(await send(`${service.url}/inspect`), 429, "too_many_requests");
  });
});
