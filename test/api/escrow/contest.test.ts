import fc from "fast-check";
import { keccak256, sha256, stringToBytes, zeroHash } from "viem";
import { beforeAll, describe, expect, test } from "vitest";
import { connect } from "../../../api/platform/db/connection.ts";
import { canonical } from "../../../packages/escrow/src/canonical.ts";
import { parseKeySet, verifyDocument } from "../../../packages/verifier/src/index.ts";
import { devAccount } from "../../../scripts/embedded/dev-accounts.ts";
import {
  type ContestableHold,
  contest,
  contestBody,
  deliverWithWindow,
  HAIKU,
  holdWithWindow,
  postContest,
  signWithWindow,
  startContestScene,
  untilOf,
} from "../../support/escrow/contest.ts";
import { END_TURNS, hold, newMerchant, processOf, requestedOutcomes, statusOf } from "../../support/escrow/contract.ts";
import { deliver, GOOD, type Sent } from "../../support/escrow/delivery.ts";
import { forFile } from "../../support/for-file.ts";
import { expectProblem } from "../../support/payments/expectations.ts";
import { send } from "../../support/payments/requests.ts";
import { newPayer } from "../../support/payments/signing.ts";

const scene = await forFile(startContestScene());
const { service, at, pass, mineAt, now, chain } = scene;
const merchant = newMerchant();
const database = await forFile(connect(service.config.databaseUrl));
const TOO_SHORT = { expect: { min_bytes: 1_000 } };
const EXPECT = { category: "expect" };

const newHold = () => holdWithWindow(at.escrow, merchant, { conditions: TOO_SHORT });

/** A hold with an open contest window, and the window's end. */
async function open(): Promise<ContestableHold & { readonly until: number }> {
  const held = await newHold();
  const { body } = await deliverWithWindow(service, merchant, { held });
  return { ...held, until: untilOf(body) };
}

const expectNoContest = async (held: ContestableHold) =>
  expect((await (await fetch(`${service.url}/escrow/contest/${held.id}`)).json()) as object).toMatchObject({
    contest: null,
    status: "pending",
  });

describe("invalid contest", () => {
  let untouched: ContestableHold;
  beforeAll(async () => {
    untouched = await open();
  });

  test.each<[string, number, string, (good: Record<string, unknown>) => unknown]>([
    ["a body that is not a JSON object", 400, "malformed_request", () => "contest"],
    ["a malformed payment_id", 400, "malformed_request", (good) => ({ ...good, payment_id: "0x12" })],
    ["an unknown field", 400, "malformed_request", (good) => ({ ...good, comment: "bad" })],
    ["a claim about quality", 422, "unacceptable", (good) => ({ ...good, claim: { category: "quality" } })],
    ["a claim about a CI run", 422, "unacceptable", (good) => ({ ...good, claim: { category: "ci-status" } })],
    [
      "a URL chosen by the buyer",
      422,
      "unacceptable",
      (good) => ({ ...good, claim: { category: "http-delivery", url: "http://victim.example/" } }),
    ],
    [
      "conditions chosen by the buyer",
      422,
      "unacceptable",
      (good) => ({ ...good, claim: { category: "expect", conditions: { min_bytes: 9 } } }),
    ],
    [
      "an incomplete delivery",
      400,
      "malformed_request",
      (good) => ({ ...good, claim: { category: "payload-hash", delivery: { status: 200 } } }),
    ],
    ["an unknown payment", 404, "not_found", (good) => ({ ...good, payment_id: `0x${"ab".repeat(32)}` })],
    [
      "a claim other than the signed one",
      403,
      "not_the_payer",
      (good) => ({ ...good, claim: { category: "http-delivery" } }),
    ],
    ["a junk signature", 403, "not_the_payer", (good) => ({ ...good, signature: `0x${"11".repeat(65)}` })],
  ])("A contest with this fault is rejected and changes nothing: %s", async (...[, status, code, change]) => {
    const good = await contestBody(service, { held: untouched, claim: EXPECT });
    expectProblem(await postContest(service, change(good)), status, code);
    await expectNoContest(untouched);
  });

  test("A contest signed by a stranger or by the merchant is rejected", async () => {
    const held = await open();
    for (const signer of [newMerchant(), merchant])
      expectProblem(
        await postContest(service, await contestBody(service, { held, claim: EXPECT, signer })),
        403,
        "not_the_payer",
      );
    await expectNoContest(held);
  });

  test("A contest signed for another payment, contract, or chain is rejected", async () => {
    const [held, other] = [await open(), await open()];
    const good = await contestBody(service, { held, claim: EXPECT });
    expectProblem(await postContest(service, { ...good, payment_id: other.id }), 403, "not_the_payer");
    const at2 = { ...held, info: { ...held.info, operator: at.operator.escrow.address } };
    const elsewhere = await contestBody(service, { held: at2, claim: EXPECT });
    expectProblem(await postContest(service, elsewhere), 403, "not_the_payer");
    const { signTypedData } = held.buyer;
    const signer = {
      signTypedData: ((typed: { domain: object }) =>
        signTypedData({ ...typed, domain: { ...typed.domain, chainId: 84532 } } as never)) as typeof signTypedData,
    };
    expectProblem(
      await postContest(service, await contestBody(service, { held, claim: EXPECT, signer })),
      403,
      "not_the_payer",
    );
    await expectNoContest(held);
  });

  test("A contest before the delivery, or without a window in the terms, is a 404", async () => {
    expectProblem(await contest(service, await newHold(), EXPECT), 404, "not_found");
    const plain = await hold(at.escrow, merchant.address);
    expect((await deliver(service, merchant, { ...plain, ...GOOD })).body.decision).toBe("release");
    expectProblem(await contest(service, plain, EXPECT), 404, "not_found");
    await pass();
    expect(await statusOf(at.escrow, plain)).toBe("released");
  });
});

test("A delivery must have a contest member exactly if the hold's terms have a window", async () => {
  const held = await newHold();
  expectProblem(await deliver(service, merchant, { ...held, ...GOOD }), 422, "unacceptable");
  const plain = { ...(await hold(at.escrow, merchant.address)), contest: held.contest };
  expectProblem(await deliverWithWindow(service, merchant, { held: plain }), 422, "unacceptable");
  const other = await deliverWithWindow(service, merchant, { held, also: { contest: undefined } });
  expectProblem(other, 403, "not_the_merchant");
  expectProblem(
    await deliverWithWindow(service, merchant, { held, also: { delivery_version: 2 } }),
    400,
    "malformed_request",
  );
  expect([await statusOf(at.escrow, held), await statusOf(at.escrow, plain)]).toEqual(["held", "held"]);
});

test("A repeated contest gets the same response, even after the payment has ended, and a different one is a conflict", async () => {
  const held = await open();
  const first = await contest(service, held, EXPECT);
  const again = await contest(service, held, EXPECT);
  expect([first.headers.get("x-idempotent-replay"), again.headers.get("x-idempotent-replay")]).toEqual([null, "true"]);
  expect(again.body).toEqual(first.body);
  expectProblem(await contest(service, held, { category: "http-delivery" }), 409, "contest_conflict");
  await pass();
  expect((await contest(service, held, EXPECT)).body).toMatchObject({ answer: first.body.answer, status: "refunded" });
  expectProblem(await contest(service, held, { category: "http-delivery" }), 409, "contest_conflict");
});

test("A contest counts until the window's last second, and one second later it is too late", async () => {
  const [last, end] = [await open(), await open()];
  await mineAt(last.until - 1);
  expect((await contest(service, last, EXPECT)).body.contest).toMatchObject({ rule: "claim_false" });
  await mineAt(end.until);
  expectProblem(await contest(service, end, EXPECT), 409, "contest_over");
  await pass();
  expect([await statusOf(at.escrow, last), await statusOf(at.escrow, end)]).toEqual(["refunded", "released"]);
  expectProblem(await contest(service, end, EXPECT), 409, "contest_over");
});

test("A halted chain leaves the window open, and the release follows once blocks continue", async () => {
  const held = await open();
  await mineAt(held.until - 1);
  for (let look = 0; look < 3; look += 1) await pass();
  expect(await requestedOutcomes(at.escrow, held)).toEqual([]);
  // The clock jumps past minute 30, so the first transaction decides. Only the service sends one here.
  await mineAt(held.until + 1_200);
  await pass();
  expect(await statusOf(at.escrow, held)).toBe("released");
});

test("Concurrent contests and releases in two processes lead to one contest, one answer, and one outcome per payment", async () => {
  const { escrow: other } = await processOf(service);
  // In sequence, because all holds have one sender.
  const held = [await open(), await open(), await open(), await open()];
  await mineAt(Math.min(...held.map(({ until }) => until)) - 1);
  const made = held.flatMap((one) => [
    contest(service, one, EXPECT),
    contest(service, one, { category: "http-delivery" }),
  ]);
  await Promise.all([...made, other.answerContests(), pass(), other.settleDue()]);
  await other.idle();
  await mineAt(Math.max(...held.map(({ until }) => until)));
  await pass();
  for (const one of held) {
    const { contest: kept } = (await (await fetch(`${service.url}/escrow/contest/${one.id}`)).json()) as {
      contest: { claim: { category: string }; decision: "release" | "refund" };
    };
    const isExpect = kept.claim.category === "expect";
    expect(kept.decision).toBe(isExpect ? "refund" : "release");
    expect((await requestedOutcomes(at.escrow, one)).map(({ decision }) => decision)).toEqual([kept.decision]);
  }
});

test("A release whose fee is below its gas is charged to the payer until a contest turns it into a refund", async () => {
  const seller = newMerchant();
  const gasOf = async () => {
    const account = Buffer.from(contested.info.payer.slice(2), "hex");
    const { rows } = await database.query("SELECT gas::int FROM escrow_gas WHERE account = $1", [account]);
    return (rows[0] as { gas: number }).gas;
  };
  const by = await newPayer(chain);
  const contested = await holdWithWindow(at.escrow, seller, { conditions: TOO_SHORT, maxAmount: 20_000n, by });
  await deliverWithWindow(service, seller, { held: contested });
  expect(await gasOf()).toBe(40_000);
  expect((await contest(service, contested, EXPECT)).status).toBe(200);
  expect(await gasOf()).toBe(0);
  await pass();
  expect([await statusOf(at.escrow, contested), await gasOf()]).toEqual(["refunded", 0]);
  // A large fee gives no credit while it can still be refunded.
  const small = await hold(at.escrow, seller.address, { maxAmount: 20_000n, by });
  await deliver(service, seller, { ...small, ...GOOD });
  await deliverWithWindow(service, seller, { held: await holdWithWindow(at.escrow, seller, { by }) });
  expect(await gasOf()).toBe(40_000);
});

interface Times {
  /** Seconds: the window's length, from the hold to the delivery, and from the delivery to the contest (null: none). */
  readonly window: number;
  readonly delivery: number;
  readonly contest: number | null;
  readonly isTrue: boolean;
  /** Seconds from the delivery to each run of the service's upkeep. */
  readonly looks: readonly number[];
}

const times: fc.Arbitrary<Times> = fc.record({
  window: fc.integer({ min: 1, max: 1_200 }),
  delivery: fc.integer({ min: 10, max: 1_790 }),
  contest: fc.option(fc.nat(1_300)),
  isTrue: fc.boolean(),
  looks: fc.array(fc.nat(1_300), { maxLength: 3 }),
});

const EDGES: readonly Times[] = [
  { window: 600, delivery: 1_080, contest: 599, isTrue: false, looks: [598] },
  { window: 600, delivery: 1_081, contest: null, isTrue: false, looks: [] },
  { window: 1_200, delivery: 480, contest: 1_200, isTrue: false, looks: [1_199] },
  { window: 1, delivery: 300, contest: 0, isTrue: false, looks: [0] },
];

test("For any times of delivery, contest, and upkeep, there is one outcome, never early, and the window ends two minutes before minute 30", async () => {
  const property = async ({ window, delivery, contest: after, isTrue, looks }: Times) => {
    const conditions = { expect: { min_bytes: isTrue ? 1 : 1_000 } };
    const held = await holdWithWindow(at.escrow, merchant, { seconds: window, conditions });
    const { blockNumber } = await chain.client.getTransactionReceipt({ hash: held.transaction });
    const from = Number((await chain.client.getBlock({ blockNumber })).timestamp);
    await mineAt(from + delivery);
    const answer = await deliverWithWindow(service, merchant, { held });
    const fits = delivery + window + 120 <= 1_800;
    expect(answer.status).toBe(fits ? 200 : 409);
    if (!fits) {
      expect(await statusOf(at.escrow, held)).toBe("held");
      return;
    }
    const until = untilOf(answer.body);
    expect([until, until <= from + 1_800 - 120]).toEqual([from + delivery + window, true]);
    let [contested, over] = [false, false];
    const steps = [...looks.map((second) => ({ second, isContest: false })), { second: window, isContest: false }];
    if (after !== null) steps.push({ second: after, isContest: true });
    for (const { second, isContest } of steps.toSorted((one, other) => one.second - other.second)) {
      // Blocks mined in the meantime may have moved the clock past it.
      if ((await now()) < from + delivery + second) await mineAt(from + delivery + second);
      const isOpen = !over && (await now()) < from + delivery + window;
      if (isContest) {
        expect((await contest(service, held, EXPECT)).status).toBe(isOpen ? 200 : 409);
        contested = isOpen;
        continue;
      }
      await pass();
      over ||= contested || !isOpen;
      const ended = contested && !isTrue ? "refunded" : "released";
      expect(await statusOf(at.escrow, held)).toBe(over ? ended : "held");
    }
    const asked = await requestedOutcomes(at.escrow, held);
    expect(asked.map(({ decision }) => decision)).toEqual([contested && !isTrue ? "refund" : "release"]);
  };
  await fc.assert(fc.asyncProperty(times, property), { numRuns: 12, examples: EDGES.map((one) => [one]) });
});

const holdOfAnyTerms = () => holdWithWindow(at.escrow, merchant);
const status = (held: ContestableHold) => statusOf(at.escrow, held);
/** ERC-1271 wallet in machine code. It accepts every signature until it is called without data. */
const REVOCABLE = `0x3615603457600054603b577f1626ba7e${"00".repeat(28)}60005260206000f35b6001600055005b00` as const;
/** Another wallet that accepts short signatures. A long one makes it run the code appended here. */
const HALTING = "0x3661020010601857631626ba7e60e01b60005260206000f35b" as const;

async function delivered(held: ContestableHold): Promise<void> {
  const { status: answered, body } = await deliverWithWindow(service, merchant, { held });
  expect([answered, body.rule, body.status]).toEqual([200, "delivered", "pending"]);
}

describe("contest on the ground payload-hash", () => {
  const OTHER = { contentType: "application/json", body: '{"haiku":"A frog jumps in"}' };
  const claimOf = async (held: ContestableHold, sent: typeof OTHER, signer = merchant) => ({
    category: "payload-hash",
    delivery: await signWithWindow(service, signer, { held, sent }),
  });

  test("A signed delivery that differs from the forwarded one is refunded", async () => {
    const held = await holdOfAnyTerms();
    await delivered(held);
    const { body } = await contest(service, held, await claimOf(held, OTHER));
    expect(body).toMatchObject({ contest: { rule: "claim_false" } });
    // The record contains the claim as it was signed.
    const { claim, claim_sha256 } = body.answer as { claim: object; claim_sha256: string };
    expect(claim_sha256).toBe(sha256(Buffer.from(canonical(claim))));
    expect((body.answer as { facts: unknown }).facts).toContainEqual({
      fact: "condition",
      condition: "body_sha256",
      expected: sha256(Buffer.from(OTHER.body)),
      observed: sha256(Buffer.from(HAIKU.body)),
      result: "false",
      reason: "mismatch",
    });
    await pass();
    expect(await status(held)).toBe("refunded");
  });

  test.each<[string, Sent]>([
    ["1,025 characters", { ...OTHER, contentType: "x".repeat(1_025) }],
    ["U+0000", { ...OTHER, contentType: "text/plain\0" }],
    ["a lone surrogate", { ...OTHER, contentType: "text/\ud800" }],
  ])("a signed delivery with %s is contested like any other", async (_, sent) => {
    const held = await holdOfAnyTerms();
    await delivered(held);
    const claim = { category: "payload-hash", delivery: await signWithWindow(service, merchant, { held, sent }) };
    const first = await contest(service, held, claim);
    expect(first).toMatchObject({ status: 200, body: { contest: { decision: "refund", rule: "claim_false" } } });
    expect((await contest(service, held, claim)).body).toEqual(first.body);
    const keys = await parseKeySet((await send(`${service.url}/.well-known/jwks.json`)).text);
    const answer = JSON.stringify(first.body.answer);
    expect(await verifyDocument(answer, { keys, issuer: service.url })).toMatchObject({ valid: true });
    await pass();
    expect(await status(held)).toBe("refunded");
  });

  test("A header too long for a request, or not valid text, is contested by its hash", async () => {
    const held = await holdOfAnyTerms();
    await delivered(held);
    const contentType = "x".repeat(1_000_000);
    const { content_type: _, ...rest } = await signWithWindow(service, merchant, {
      held,
      sent: { ...HAIKU, contentType },
    });
    const delivery = { ...rest, content_type_keccak256: keccak256(stringToBytes(contentType)) };
    const both = { category: "payload-hash", delivery: { ...delivery, content_type: "x" } };
    expectProblem(await contest(service, held, both), 400, "malformed_request");
    const { body } = await contest(service, held, { category: "payload-hash", delivery });
    expect(body).toMatchObject({ contest: { rule: "claim_false" } });
    expect((body.answer as { facts: object[] }).facts.map((fact) => "result" in fact && fact.result)).toEqual([
      "true",
      "true",
      "false",
      "true",
    ]);
  });

  test("A lone surrogate matches U+FFFD, because both are signed as the same bytes", async () => {
    const held = await holdOfAnyTerms();
    const sent = { ...HAIKU, contentType: "text/\ud800" };
    expect((await deliverWithWindow(service, merchant, { held, sent })).body.rule).toBe("delivered");
    const signed = await signWithWindow(service, merchant, { held, sent });
    const claim = { category: "payload-hash", delivery: { ...signed, content_type: "text/\ufffd" } };
    expect((await contest(service, held, claim)).body).toMatchObject({ contest: { rule: "claim_true" } });
  });

  test("A contract's signature is checked at the evaluation's block, whatever it revokes later (ERC-1271)", async () => {
    const owner = newMerchant();
    const wallet = { ...owner, address: newMerchant().address };
    await scene.chain.client.setCode({ address: wallet.address, bytecode: REVOCABLE });
    const held = await holdWithWindow(at.escrow, wallet);
    expect((await deliverWithWindow(service, wallet, { held })).body.decision).toBe("release");
    const hash = await scene.chain.client.sendTransaction({ account: devAccount(3), to: wallet.address });
    expect((await scene.chain.client.waitForTransactionReceipt({ hash })).status).toBe("success");
    const other = await holdWithWindow(at.escrow, wallet);
    expectProblem(await deliverWithWindow(service, wallet, { held: other }), 403, "not_the_merchant");
    const claim = await claimOf(held, OTHER, wallet);
    // Longer than a merchant's own forward allows.
    const delivery = { ...claim.delivery, signature: `0x${"11".repeat(8_192)}` };
    const { body } = await contest(service, held, { ...claim, delivery });
    expect(body).toMatchObject({ contest: { rule: "claim_false", decision: "refund" } });
    await pass();
    expect(await status(held)).toBe("refunded");
  });

  test.each([
    ["runs out of gas", "601856"],
    ["meets an invalid instruction", "fe"],
  ])("A signature on which the merchant's contract %s is invalid, so the payment is released", async (_, halting) => {
    const owner = newMerchant();
    const wallet = { ...owner, address: newMerchant().address };
    await scene.chain.client.setCode({ address: wallet.address, bytecode: `${HALTING}${halting}` });
    const held = await holdWithWindow(at.escrow, wallet);
    expect((await deliverWithWindow(service, wallet, { held })).body.decision).toBe("release");
    const claim = await claimOf(held, OTHER, wallet);
    const delivery = { ...claim.delivery, signature: `0x${"11".repeat(1_000)}` };
    const { body } = await contest(service, held, { ...claim, delivery });
    expect(body).toMatchObject({ contest: { rule: "no_ground", decision: "release" } });
  });

  test.each([
    [
      "the same that was forwarded",
      "claim_true",
      async (held: ContestableHold) => claimOf(held, HAIKU as typeof OTHER),
    ],
    ["signed by somebody else", "no_ground", async (held: ContestableHold) => claimOf(held, OTHER, newMerchant())],
    ["signed for another payment", "no_ground", async () => claimOf(await holdOfAnyTerms(), OTHER)],
    [
      "with 8 KiB of an invalid signature",
      "no_ground",
      async (held: ContestableHold) => {
        const claim = await claimOf(held, OTHER);
        return { ...claim, delivery: { ...claim.delivery, signature: `0x${"ff".repeat(8_192)}` } };
      },
    ],
  ])("A delivery %s: the rule is %s, and the payment is released", async (_, rule, claim) => {
    const held = await holdOfAnyTerms();
    await delivered(held);
    expect((await contest(service, held, await claim(held))).body.contest).toMatchObject({ rule, decision: "release" });
    await pass();
    expect(await status(held)).toBe("released");
  });
});

describe("contests while the service is busy", async () => {
  // These contests are made before their windows close, while the service is busy with others.

  const scene = await forFile(startContestScene());
  const { service, at, site, pass, mineAt } = scene;
  const owner = await forFile(connect(service.database.ownerUrl, 1));
  const { escrow } = await processOf(service);
  const merchant = newMerchant();

  /** Makes every open contest due, so that new ones wait behind them. */
  const BUSY = "UPDATE escrow_contest SET next_attempt_at = '-infinity', owner = NULL WHERE is_open";

  async function open(): Promise<ContestableHold & { readonly until: number }> {
    const conditions = { expect: { min_bytes: 1_000 }, "http-delivery": { url: `${site.url}/gone` } };
    const held = await holdWithWindow(at.escrow, merchant, { seconds: 60, conditions });
    const { body } = await deliverWithWindow(service, merchant, { held });
    return { ...held, until: untilOf(body) };
  }

  /** Makes a contest, which stays unanswered. */
  async function handIn(held: ContestableHold): Promise<void> {
    const { body } = await contest(service, held, { category: "http-delivery" });
    expect(body).toMatchObject({ contest: { decision: null }, status: "pending" });
  }

  /** Sends every transaction that is due but answers no contest. */
  async function settle(): Promise<void> {
    await owner.query(END_TURNS);
    await escrow.settleDue();
    await escrow.idle();
  }

  const answerTo = async ({ id }: ContestableHold) => (await send(`${service.url}/escrow/contest/${id}`)).body;

  test("An open contest never releases: its answer comes after the window, or minute 30 refunds the payment", async () => {
    const first = await open();
    // No one answers the first contest until `answerContests` runs below.
    await owner.query(
      `INSERT INTO escrow_contest (payment, merchant, claim, claim_sha256, signature, made_at, next_attempt_at)
     SELECT payment, merchant, '{"category":"http-delivery"}', payment, '\\x01', 1, '-infinity' FROM escrow_task`,
    );
    const [late, never] = [await open(), await open()];
    await owner.query(BUSY);
    for (const held of [late, never]) await handIn(held);
    await mineAt(never.until + 60);
    await settle();
    const held = [first, late, never];
    expect(await Promise.all(held.map((one) => statusOf(at.escrow, one)))).toEqual(["held", "held", "held"]);

    await owner.query("UPDATE escrow_contest SET next_attempt_at = 'infinity' WHERE payment = decode($1, 'hex')", [
      never.id.slice(2),
    ]);
    await escrow.answerContests();
    await settle();
    expect(await answerTo(late)).toMatchObject({ contest: { rule: "claim_false" }, status: "refunded" });
    expect(await statusOf(at.escrow, never)).toBe("held");

    const { blockNumber } = await scene.chain.client.getTransactionReceipt({ hash: never.transaction });
    await mineAt(Number((await scene.chain.client.getBlock({ blockNumber })).timestamp) + 1_800);
    await settle();
    const refund = { decision: "refund", event: { record: zeroHash } };
    expect(await requestedOutcomes(at.escrow, never)).toMatchObject([refund]);
    await pass();
    expect(await answerTo(never)).toMatchObject({
      contest: { rule: "window_closed", decision: "refund" },
      status: "refunded",
    });
    expect(await requestedOutcomes(at.escrow, never)).toMatchObject([refund]);
  });
});
