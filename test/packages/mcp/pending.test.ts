import { mkdir, readdir, readFile, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { LocalAccount } from "viem";
import { beforeEach, describe, expect, test } from "vitest";
import { formatUsd } from "../../../api/platform/money.ts";
import { keptIn } from "../../../packages/mcp/src/pending-payments.ts";
import { ServiceError } from "../../../packages/mcp/src/service.ts";
import { startTestChain } from "../../support/chain/chain.ts";
import { eventually } from "../../support/eventually.ts";
import { forFile } from "../../support/for-file.ts";
import {
  between,
  call,
  connectLocal,
  counting,
  type LocalPlan,
  newStateFolder,
  roadTo,
} from "../../support/packages/mcp.ts";
import { settlements } from "../../support/payments/on-chain.ts";
import { PRICES } from "../../support/payments/prices.ts";
import { newPayer } from "../../support/payments/signing.ts";
import { startService } from "../../support/service/service.ts";

/** A payment without an answer is sent again, and its call never signs another one. */

const CLAIM = { category: "payload-hash", conditions: { payload_text: "as agreed", expected_sha256: "0".repeat(64) } };
const BASIC = { test: "basic" };
const SOON = 100;

let payer: LocalAccount;
let signatures: () => number;
let folder: string;

const chain = await forFile(startTestChain());
const service = await forFile(startService({ chain }));

beforeEach(async () => {
  ({ payer, signatures } = counting(await newPayer(chain)));
  folder = newStateFolder();
  await mkdir(folder, { recursive: true });
});

/**
 * A tool server as the client starts it. Only the folder survives it. It retries for long only if the service can
 * respond.
 */
const start = ({ service, ...plan }: Pick<LocalPlan, "service"> & Partial<LocalPlan>) => {
  const isLost = "way" in service && service.way !== "open";
  return connectLocal({ service, payer, pending: keptIn(folder), ...(isLost ? { giveUpAfterMs: SOON } : {}), ...plan });
};

const charges = async () => (await settlements(chain, payer.address)).length;
const files = () => readdir(folder);
/**
 * The number of unanswered payments. An answered one stays in the folder for the calls that began before its answer.
 */
const open = async () => {
  const texts = await Promise.all((await files()).map((name) => readFile(join(folder, name), "utf8")));
  return texts.filter((text) => JSON.parse(text).answeredAt === undefined).length;
};
const PENDING = { isError: false, structured: { status: "pending", price: { amount_usd: formatUsd(PRICES.basic) } } };
const PAID = { isError: false, structured: { status: "paid" } };

/** Waits until no payment is unanswered. */
const nothingOpen = () => eventually(open, 0);

describe.each([
  ["its response is lost", "lost after"],
  ["it never arrives", "lost before"],
  ["the service answers 503", { status: 503 }],
  ["a gateway answers 404", { status: 404 }],
] as const)("a payment while %s", (_name, way) => {
  test("The next call sends it again, even after a restart, with one signature and one charge", async () => {
    const road = roadTo(service.url, way);
    const first = await call(await start({ service: road }), "certify", BASIC);
    expect(first).toMatchObject(PENDING);
    expect(first.structured.what_to_do).toMatch(/outcome is not known yet: .*Call this tool again with the same arg/);
    expect(await call(await start({ service: road }), "certify", BASIC)).toMatchObject(PENDING);
    road.way = "open";
    const last = await call(await start({ service: road }), "certify", BASIC);
    expect(last).toMatchObject({ ...PAID, structured: { status: "paid", budget: { spent_usd: "0.00" } } });
    expect(last.structured.signed_at).toBe(first.structured.signed_at);
    expect([signatures(), await charges(), new Set(road.payments).size]).toEqual([1, 1, 1]);
    await nothingOpen();
  });
});

test("An answered payment is forgotten, so the same call buys again", async () => {
  const client = await start({ service: roadTo(service.url, "open") });
  for (const count of [1, 2]) {
    expect(await call(client, "certify", BASIC)).toMatchObject(PAID);
    expect([signatures(), await charges()]).toEqual([count, count]);
  }
});

test("A different call and a different wallet can buy while a payment is pending", async () => {
  const road = roadTo(service.url, "lost before");
  await call(await start({ service: road }), "arbiter_verify", CLAIM);
  await call(await start({ service: road }), "arbiter_verify", { ...CLAIM, deal_ref: "deal 2" });
  await call(await start({ service: road }), "certify", BASIC);
  expect([signatures(), (await files()).length]).toEqual([3, 3]);
  const other = counting(await newPayer(chain));
  await call(await start({ service: road, payer: other.payer }), "certify", BASIC);
  expect([signatures(), other.signatures(), (await files()).length]).toEqual([3, 1, 4]);
});

test("A payment is on disk before it is sent, and only its owner can read it", async () => {
  let kept: { readonly headers: object } | null = null;
  const own = join(folder, "own");
  const modeOf = async (path: string) => ((await stat(path)).mode & 0o777).toString(8);
  let modes: readonly string[] = [];
  const road = roadTo(service.url, "open");
  const looked = between(
    service.url,
    (answer) => answer,
    (request) => request,
  );
  const watching = {
    ...looked,
    async send(request: Parameters<typeof road.send>[0]) {
      if (request.headers?.["PAYMENT-SIGNATURE"] !== undefined) {
        const [name = ""] = await readdir(own);
        kept = JSON.parse(await readFile(join(own, name), "utf8"));
        modes = await Promise.all([own, join(own, name)].map(modeOf));
        expect(kept?.headers).toEqual(request.headers);
      }
      return road.send(request);
    },
  };
  const client = await start({ service: watching, pending: keptIn(own) });
  expect(await call(client, "certify", BASIC)).toMatchObject(PAID);
  expect(kept).not.toBeNull();
  expect(modes).toEqual(["700", "600"]);
});

describe("simultaneous calls", () => {
  test("A call that its client repeats in the meantime shares the answer", async () => {
    const client = await start({ service: roadTo(service.url, "open") });
    const answers = await Promise.all([1, 2, 3].map(() => call(client, "certify", BASIC)));
    expect(answers).toMatchObject([PAID, PAID, PAID]);
    expect([signatures(), await charges()]).toEqual([1, 1]);
  });

  test("Two tool servers sign and pay once, even after a restart", async () => {
    const road = roadTo(service.url, "lost after");
    const bothCall = async () => {
      const both = await Promise.all([start({ service: road }), start({ service: road })]);
      return Promise.all(both.map((client) => call(client, "certify", BASIC)));
    };
    expect(await bothCall()).toMatchObject([PENDING, PENDING]);
    expect([signatures(), new Set(road.payments).size, (await files()).length]).toEqual([1, 1, 1]);
    road.way = "open";
    expect(await bothCall()).toMatchObject([PAID, PAID]);
    expect([signatures(), await charges()]).toEqual([1, 1]);
  });

  test("A second program that has not signed when the first has its answer signs nothing", async () => {
    const road = roadTo(service.url, "open");
    const [slow, hurry] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const dawdling = {
      ...road,
      async send(request: Parameters<typeof road.send>[0]) {
        const isAsking =
          request.path === "/test/basic" && request.headers === undefined && request.timeoutMs === undefined;
        if (isAsking) {
          slow.resolve();
          await hurry.promise;
        }
        return road.send(request);
      },
    };
    const late = call(await start({ service: dawdling }), "certify", BASIC);
    await slow.promise;
    expect(await call(await start({ service: road }), "certify", BASIC)).toMatchObject(PAID);
    await nothingOpen();
    hurry.resolve();
    expect(await late).toMatchObject({ ...PAID, structured: { signed_at: expect.any(String) } });
    expect([signatures(), await charges()]).toEqual([1, 1]);
  });

  test("A failed call is not shared by later calls", async () => {
    const road = roadTo(service.url, "open");
    let isAway = true;
    const client = await start({
      service: {
        ...road,
        async send(request) {
          if (isAway) throw new ServiceError("connection reset.");
          return road.send(request);
        },
      },
    });
    expect(await call(client, "certify", BASIC)).toMatchObject({ isError: true });
    isAway = false;
    expect(await call(client, "certify", BASIC)).toMatchObject(PAID);
  });
});

test("A response that cannot be checked yet is requested again and not bought again", async () => {
  let isAway = true;
  const keyless = between(service.url, (answer, { path }) => {
    if (isAway && path === "/.well-known/jwks.json") throw new ServiceError("connection reset.");
    return answer;
  });
  expect(await call(await start({ service: keyless }), "arbiter_verify", CLAIM)).toMatchObject({
    isError: true,
    text: expect.stringMatching(/^Paid 0\.25 USDC .*could not be checked: .*Call this tool again/),
  });
  isAway = false;
  expect(await call(await start({ service: keyless }), "arbiter_verify", CLAIM)).toMatchObject(PAID);
  expect([signatures(), await charges()]).toEqual([1, 1]);
});

interface Otherwise {
  readonly plan?: Pick<LocalPlan, "payTo">;
  readonly input?: object;
}

test.each<[string, Otherwise, RegExp]>([
  ["a lower max_price", { input: { max_price: "0.10" } }, /is pending for this call, more than max_price 0\.10 USDC/],
  [
    "another payee from the user",
    { plan: { payTo: `0x${"0b".repeat(20)}` } as const },
    /is pending for this call, but only 0x0b/,
  ],
])("With %s, a pending payment is not sent and not replaced", async (_name, { plan, input }: Otherwise, message) => {
  const road = roadTo(service.url, "lost before");
  await call(await start({ service: road }), "certify", BASIC);
  road.way = "open";
  const refused = await call(await start({ service: road, ...plan }), "certify", { ...BASIC, ...input });
  expect(refused).toMatchObject({ isError: true, text: expect.stringMatching(message) });
  expect(refused.text).toMatch(/Nothing was signed or sent/);
  expect([signatures(), road.payments.length]).toEqual([1, 0]);
});

describe("a payment that cannot be stored", () => {
  test("Nothing is signed if the folder cannot be created", async () => {
    const file = join(folder, "file");
    await writeFile(file, "");
    const client = await start({ service: roadTo(service.url, "open"), pending: keptIn(join(file, "state")) });
    expect(await call(client, "certify", BASIC)).toMatchObject({
      isError: true,
      text: expect.stringMatching(/Payments are stored in .* but that fails: .*Nothing was sent/),
    });
    expect(signatures()).toBe(0);
  });
});

describe("a service with Retry-After", () => {
  const DETAIL = "3 payments of this payer were mined within an hour without settling.";
  /** Responds to the first paid request with a 429, and records when each request came. */
  const asking = (retryAfter: string) => {
    const open = roadTo(service.url, "open");
    const paid: number[] = [];
    const send: typeof open.send = async (request) => {
      if (request.headers?.["PAYMENT-SIGNATURE"] === undefined) return open.send(request);
      paid.push(performance.now());
      const problem = { code: "payer_refused", detail: DETAIL };
      return paid.length > 1
        ? open.send(request)
        : { status: 429, headers: new Headers({ "retry-after": retryAfter }), text: JSON.stringify(problem) };
    };
    return { service: { ...open, send }, paid };
  };

  test("A long wait is not retried, and the agent learns how long it is", async () => {
    for (const retryAfter of ["3540", new Date(Date.now() + 3_540_000).toUTCString()]) {
      const { service: road, paid } = asking(retryAfter);
      const answer = await call(
        await connectLocal({ service: road, payer, pending: keptIn(newStateFolder()) }),
        "arbiter_verify",
        { ...CLAIM, deal_ref: retryAfter },
      );
      expect(answer).toMatchObject({ isError: false, structured: { status: "pending" } });
      const [, seconds] =
        /429: 3 payments .* It requests a wait of (\d+) seconds before that\. /.exec(answer.text) ?? [];
      expect(Number(seconds)).toBeGreaterThan(3_000);
      expect(Number(seconds)).toBeLessThanOrEqual(3_540);
      expect(paid).toHaveLength(1);
    }
  });

  test("After a short wait, the same payment is sent again", async () => {
    const before = signatures();
    const { service: road, paid } = asking("2");
    expect(
      await call(await connectLocal({ service: road, payer, pending: keptIn(newStateFolder()) }), "certify", {
        test: "basic",
      }),
    ).toMatchObject({
      isError: false,
      structured: { status: "paid" },
    });
    expect([paid.length, signatures() - before]).toEqual([2, 1]);
    expect((paid[1] ?? 0) - (paid[0] ?? 0)).toBeGreaterThan(1_900);
  });
});
