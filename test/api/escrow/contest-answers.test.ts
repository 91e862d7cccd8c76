import { keccak256, sha256, stringToBytes, zeroHash } from "viem";
import { describe, expect, test } from "vitest";
import { connect } from "../../../api/platform/db/connection.ts";
import { canonical } from "../../../packages/escrow/src/canonical.ts";
import { parseKeySet, verifyDocument } from "../../../packages/verifier/src/index.ts";
import { devAccount } from "../../../scripts/embedded/dev-accounts.ts";
import {
  type ContestableHold,
  contest,
  deliverWithWindow,
  HAIKU,
  holdWithWindow,
  signWithWindow,
  startContestScene,
  untilOf,
} from "../../support/escrow/contest.ts";
import { END_TURNS, newMerchant, processOf, requestedOutcomes, statusOf } from "../../support/escrow/contract.ts";
import type { Sent } from "../../support/escrow/delivery.ts";
import { forFile } from "../../support/for-file.ts";
import { expectProblem } from "../../support/payments/expectations.ts";
import { send } from "../../support/payments/requests.ts";

const scene = await forFile(startContestScene());
const { service, at, pass } = scene;
const merchant = newMerchant();

const newHold = () => holdWithWindow(at.escrow, merchant);
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
    const held = await newHold();
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
    const held = await newHold();
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
    const held = await newHold();
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
    const held = await newHold();
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
    ["signed for another payment", "no_ground", async () => claimOf(await newHold(), OTHER)],
    [
      "with 8 KiB of an invalid signature",
      "no_ground",
      async (held: ContestableHold) => {
        const claim = await claimOf(held, OTHER);
        return { ...claim, delivery: { ...claim.delivery, signature: `0x${"ff".repeat(8_192)}` } };
      },
    ],
  ])("A delivery %s: the rule is %s, and the payment is released", async (_, rule, claim) => {
    const held = await newHold();
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
