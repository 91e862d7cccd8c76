import { AuthCaptureEvmScheme } from "@x402/evm/auth-capture/client";
import canonicalize from "canonicalize";
import fc from "fast-check";
import type { Handler } from "hono";
import { type LocalAccount, sha256 } from "viem";
import { generatePrivateKey, privateKeyToAccount } from "viem/accounts";
import { describe, expect, test, vi } from "vitest";
import { RefusedTerms } from "../../../packages/escrow/src/acceptable.ts";
import { canonical } from "../../../packages/escrow/src/canonical.ts";
import {
  type ContestConditions,
  contestPolicy,
  contestSecondsOf,
  isBound,
  parseContest,
} from "../../../packages/escrow/src/contest-terms.ts";
import { EscrowScheme } from "../../../packages/escrow/src/escrow-scheme.ts";
import {
  type ContestClaim,
  ContestRefused,
  contest,
  readPayment,
  signedDeliveryOf,
} from "../../../packages/escrow/src/index.ts";
import { readPayment as readHeader, requirements } from "../../../packages/escrow/src/schemes.ts";
import type { Offer } from "../../../packages/escrow/src/terms.ts";
import { parseLeastSecondsLeft } from "../../../packages/escrow/src/time-left.ts";
import { anOffer } from "../../support/escrow/any-terms.ts";
import { startContestScene } from "../../support/escrow/contest.ts";
import {
  type Bought,
  buyFrom,
  encodeHeader,
  haiku,
  newBuyer,
  openShop,
  type Pays,
  pay,
} from "../../support/escrow/sale.ts";
import { forFile } from "../../support/for-file.ts";
import { deployWallet } from "../../support/payments/wallets.ts";

const scene = await forFile(startContestScene());
const { chain, service, at, pass, mineAt } = scene;
const arbiter = { url: service.url };
const handler = vi.fn<Handler>(haiku);
const shop = await openShop({ chain, arbiter }, handler, {
  contestSeconds: 300,
  contestConditions: { expect: { expect_contains: "frog" } },
});
const EXPECT: ContestClaim = { category: "expect" };

const statusOf = async ({ id }: Bought, pays: Pays) => {
  const { escrow } = pays === "commerce" ? at.escrow : at.operator;
  return (await readPayment(chain.client, escrow.address, id)).status;
};

describe.each<Pays>(["commerce", "auth-capture"])('a shop with a contest window, paid by "%s"', (pays) => {
  test("The buyer contests a broken promise and gets the money back", async () => {
    const buyer = await newBuyer(chain);
    const bought = await buyFrom(shop, buyer, { pays });
    const { response, id, decision } = bought;
    expect([response.status, decision]).toEqual([200, "release"]);
    expect(response.headers.get("x-escrow-contest")).toBe(`${service.url}/escrow/contest/${id}`);
    await pass();
    expect(await statusOf(bought, pays)).toBe("held");
    const request = { account: buyer, arbiterUrl: service.url, paymentId: id, claim: EXPECT };
    const outcome = { decision: "refund", rule: "claim_false", url: `${service.url}/escrow/contest/${id}` };
    expect(await contest(request)).toEqual(outcome);
    expect(await contest(request)).toEqual(outcome);
    await pass();
    expect(await statusOf(bought, pays)).toBe("refunded");
    expect(await chain.usdcBalance(buyer.address)).toBe(1_000_000n);
  });
});

test("A merchant that sends its buyer another response than the arbiter's is exposed by its own signature", async () => {
  // The shop's server sends another body than its middleware forwarded, with the signature for that other body.
  const buyer = await newBuyer(chain);
  const honest = await buyFrom(shop, buyer);
  const twice = await openShop({ chain, arbiter }, (c) => c.json({ haiku: "A frog jumps in" }), {
    account: shop.account,
    contestSeconds: 300,
    contestConditions: { expect: { expect_contains: "frog" } },
    forward: async () => "release",
  });
  const other = signedDeliveryOf(await pay(twice, honest.header)) ?? expect.fail("nothing was signed");
  const claim: ContestClaim = { category: "payload-hash", delivery: other };
  const outcome = await contest({ account: buyer, arbiterUrl: service.url, paymentId: honest.id, claim });
  expect(outcome).toMatchObject({ decision: "refund", rule: "claim_false" });
});

test("A wallet contract contests with its owner's signature (ERC-1271), and with no other signature", async () => {
  const owner = privateKeyToAccount(generatePrivateKey());
  const { address } = await deployWallet(chain, owner.address);
  await chain.fund(address, 1_000_000n);
  const payer = { address, signTypedData: owner.signTypedData } as LocalAccount;
  const bought = await buyFrom(shop, payer, { pays: "auth-capture" });
  expect(bought.decision).toBe("release");
  const request = { arbiterUrl: service.url, paymentId: bought.id, claim: EXPECT };
  const stranger = contest({ ...request, account: shop.account });
  await expect(stranger).rejects.toMatchObject({ code: "not_the_payer" });
  expect(await contest({ ...request, account: payer })).toMatchObject({ decision: "refund" });
  await pass();
  expect([await statusOf(bought, "auth-capture"), await chain.usdcBalance(address)]).toEqual(["refunded", 1_000_000n]);
});

test("A shop without a window sends nothing to contest", async () => {
  const plain = await openShop({ chain, arbiter }, haiku);
  const bought = await buyFrom(plain, await newBuyer(chain));
  expect([...bought.response.headers.keys()].filter((name) => /x-escrow-(contest|delivery)/.test(name))).toEqual([]);
  await pass();
  expect(await statusOf(bought, "commerce")).toBe("released");
});

test("Buyers get the signed delivery as forwarded, and it is released when the window closes without a contest", async () => {
  const buyers = [await newBuyer(chain), await newBuyer(chain)] as const;
  const bought = [
    { pays: "commerce" as const, buyer: buyers[0], ...(await buyFrom(shop, buyers[0])) },
    { pays: "auth-capture" as const, buyer: buyers[1], ...(await buyFrom(shop, buyers[1], { pays: "auth-capture" })) },
  ];
  let closes = 0;
  for (const { response, header } of bought) {
    const delivery = signedDeliveryOf(response);
    const body = new Uint8Array(await response.arrayBuffer());
    expect(delivery).toMatchObject({ status: 200, body_sha256: sha256(body), content_type: "application/json" });
    const again = await pay(shop, header);
    expect([again.headers.get("x-idempotent-replay"), signedDeliveryOf(again)]).toEqual(["true", delivery]);
    const page = await fetch(again.headers.get("x-escrow-contest") ?? "");
    closes = Date.parse(((await page.json()) as { window: { until: string } }).window.until) / 1000;
  }
  await mineAt(closes);
  await pass();
  for (const { pays, buyer, ...one } of bought) {
    expect(await statusOf(one, pays)).toBe("released");
    const late = contest({ account: buyer, arbiterUrl: service.url, paymentId: one.id, claim: EXPECT });
    await expect(late).rejects.toThrow(ContestRefused);
    await expect(late).rejects.toMatchObject({ code: "contest_over" });
  }
});

const CONDITIONS: ContestConditions = { expect: { min_bytes: 10 }, "http-delivery": { url: "https://shop.example/a" } };
const CONTEST = { seconds: 600, conditions: CONDITIONS };
const payer = privateKeyToAccount(generatePrivateKey());
const offerOf = (pays: Pays, contest?: Offer["contest"]): Offer => ({ ...anOffer(pays), contest });

/** The client's payment for an offer: our client for the escrow, the stock client for the operator. */
async function paid(pays: Pays, accepted: ReturnType<typeof requirements>) {
  const scheme = pays === "commerce" ? new EscrowScheme(payer) : new AuthCaptureEvmScheme(payer);
  const { payload } = await scheme.createPaymentPayload(2, accepted as never);
  return { x402Version: 2, accepted, payload: payload as Record<string, unknown> };
}

const read = (payment: object, offer: Offer) => {
  const found = readHeader({ "PAYMENT-SIGNATURE": encodeHeader(payment) }, [offer], Date.now());
  if (found === null) throw new Error("There is no payment.");
  return found;
};
const refused = expect.objectContaining({ refused: expect.any(String) });

describe.each<Pays>(["commerce", "auth-capture"])('an offer with a window, paid by "%s"', (pays) => {
  const offer = offerOf(pays, CONTEST);

  test("The window and its conditions are both bound in the terms that the client signed", async () => {
    const payment = read(await paid(pays, requirements(offer, Date.now())), offer);
    if (!("info" in payment)) throw new Error(JSON.stringify(payment));
    const { info, contest } = payment;
    expect(contestSecondsOf(info)).toBe(600);
    expect(contest).toMatchObject(CONTEST);
    const { saltNonce = 0n } = contest ?? {};
    expect(isBound(info, { ...CONTEST, saltNonce })).toBe(true);
    for (const other of [{ seconds: 601 }, { conditions: {} }, { conditions: { expect: { min_bytes: 11 } } }])
      expect(isBound(info, { ...CONTEST, saltNonce, ...other })).toBe(false);
    expect(isBound(info, { ...CONTEST, saltNonce: saltNonce + 1n })).toBe(false);
  });

  test.each<[string, Offer["contest"]]>([
    ["without a window", undefined],
    ["with a longer one", { ...CONTEST, seconds: 601 }],
    ["with other conditions", { ...CONTEST, conditions: {} }],
  ])("It is not paid by what was signed for an offer %s", async (_, contest) => {
    expect(read(await paid(pays, requirements(offerOf(pays, contest), Date.now())), offer)).toEqual(refused);
  });

  test("A payment with a window is refused where the merchant offers none", async () => {
    const payment = await paid(pays, requirements(offer, Date.now()));
    expect(read(payment, offerOf(pays))).toEqual(expect.not.objectContaining({ info: expect.anything() }));
  });

  test("It is not paid by a payment with the client's own salt", async () => {
    const { x402Version, accepted, payload } = await paid(pays, requirements(offer, Date.now()));
    const { saltNonce: _, ...without } = payload;
    for (const changed of [{ ...payload, saltNonce: `0x${"11".repeat(32)}` }, without])
      expect(read({ x402Version, accepted, payload: changed }, offer)).toEqual(
        expect.not.objectContaining({ info: expect.anything() }),
      );
  });
});

test.each([
  ["a window that the terms do not have", { contest: { seconds: 900, conditions: CONDITIONS } }],
  ["conditions that do not match the policy", { contest: { seconds: 600, conditions: {} } }],
  ["a policy with other conditions", { policy: contestPolicy({ seconds: 600, conditions: {} }) }],
  ["no mention of the window in the terms", { contest: undefined, policy: undefined }],
  ["no conditions", { contest: { seconds: 600 } }],
])("Our buyer's scheme refuses an offer with %s", async (_, change) => {
  const { extra, ...offered } = requirements(offerOf("commerce", CONTEST), Date.now());
  const changed = { ...offered, extra: { ...extra, ...change } };
  await expect(new EscrowScheme(payer).createPaymentPayload(2, changed)).rejects.toThrow(RefusedTerms);
});

test.each([
  [0, 0],
  [86_400, 0],
  [86_401, 1],
  [87_600, 1_200],
  [87_601, 0],
])("A refundExpiry %i s after authorizationExpiry is a window of %i s", (beyond, seconds) => {
  const authorizationExpiry = 1_800_000_000;
  expect(contestSecondsOf({ authorizationExpiry, refundExpiry: authorizationExpiry + beyond })).toBe(seconds);
});

test.each<[string, Parameters<typeof parseContest>, RegExp]>([
  ["a fraction", [1.5], /contestSeconds is 1.5, expected a whole number from 0 to 1200/],
  ["more than 20 minutes", [1_201], /contestSeconds is 1201/],
  ["a negative number", [-1], /contestSeconds is -1/],
  ["conditions without a window", [0, CONDITIONS], /contestConditions requires contestSeconds/],
  [
    "another category",
    [60, { "ci-status": {} } as never],
    /ci-status is unknown, expected "expect" or "http-delivery"/,
  ],
  ["a URL of the response", [60, { expect: { url: "https://a.example" } } as never], /url is https:.* expected none/],
  ["no URL", [60, { "http-delivery": { min_bytes: 1 } } as never], /url is undefined, expected an absolute URL/],
  ["an unknown condition", [60, { expect: { quality: "high" } } as never], /quality is high, expected expect_status/],
  ["a wrong status", [60, { expect: { expect_status: 100 } }], /expect_status is 100/],
  ["nothing promised", [60, { expect: {} }], /has no condition/],
  ["a long text", [60, { expect: { expect_contains: "x".repeat(1_024) } }], /bytes of JSON, expected at most 1024/],
])("The option refuses %s", (_, options, message) => {
  expect(() => parseContest(...options)).toThrow(message);
});

test("With a window, a hold that somebody else made needs more time left", () => {
  expect(parseContest(0)).toBeUndefined();
  expect(parseLeastSecondsLeft(undefined)).toBe(1_200);
  expect(parseLeastSecondsLeft(undefined, CONTEST)).toBe(1_200);
  expect(parseLeastSecondsLeft(undefined, { ...CONTEST, seconds: 1_200 })).toBe(1_500);
  expect(parseLeastSecondsLeft(780, CONTEST)).toBe(780);
  expect(() => parseLeastSecondsLeft(779, CONTEST)).toThrow(
    "leastSecondsLeft is 779, expected a whole number from 780",
  );
});

test("Canonical JSON follows RFC 8785", () => {
  fc.assert(
    fc.property(fc.jsonValue(), (value) => {
      // A lone surrogate has no canonical form.
      fc.pre(JSON.stringify(value).isWellFormed() && !/\\ud[89a-f]/i.test(JSON.stringify(value)));
      expect(canonical(JSON.parse(JSON.stringify(value)))).toBe(canonicalize(value));
    }),
    { numRuns: 200 },
  );
});
