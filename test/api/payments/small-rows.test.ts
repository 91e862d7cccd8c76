import { randomBytes, randomUUID } from "node:crypto";
import type { LocalAccount } from "viem";
import { describe, expect, test } from "vitest";
import { MENU } from "../../../api/cafe/menu.ts";
import { storedIdentifier } from "../../../api/payments/header.ts";
import { createJournal } from "../../../api/payments/journal/journal-store.ts";
import { connect } from "../../../api/platform/db/connection.ts";
import { createSeal } from "../../../api/platform/db/seal.ts";
import { NETWORKS } from "../../../api/platform/networks.ts";
import { startTestChain } from "../../support/chain/chain.ts";
import { forFile } from "../../support/for-file.ts";
import { expectPaymentRequired } from "../../support/payments/expectations.ts";
import { hex, newPayment, refusedRows, WRITES } from "../../support/payments/journal-rows.ts";
import { broadcast, chargedOnce, nothingCharged } from "../../support/payments/on-chain.ts";
import { type Answer, post, v2 } from "../../support/payments/requests.ts";
import { newPayer, type Signed, signPayment, unixNow } from "../../support/payments/signing.ts";
import { binary, connectOwner, tableBytes } from "../../support/service/database.ts";
import { startService } from "../../support/service/service.ts";

const SEPOLIA = NETWORKS["eip155:84532"];
const ACCEPTED = { network: SEPOLIA.id, asset: SEPOLIA.usdc.address, extra: { name: SEPOLIA.usdc.name, version: "2" } };
const KIB = 1024;
const MANY = 1_200;
const TOGETHER = 12;

const chain = await forFile(startTestChain({ network: SEPOLIA.id }));
const service = await forFile(startService({ chain, jobs: false }));
const owner = await forFile(connectOwner(service.database));

const journal = createJournal(
  await forFile(connect(service.database.apiUrl, TOGETHER)),
  createSeal(Buffer.alloc(32, 3)),
);

const signRound = (payer: LocalAccount): Promise<Signed> =>
  signPayment(payer, { value: MENU["buy-a-round"].price }, SEPOLIA);
const order = (item: string, signed: Signed, body: unknown): Promise<Answer> =>
  post(`${service.url}/order/${item}`, v2(signed, { accepted: ACCEPTED }), JSON.stringify(body));
const buyRound = (signed: Signed): Promise<Answer> => order("buy-a-round", signed, { nickname: "Ada" });

const KEPT = `SELECT state, input, encrypted_signature IS NOT NULL AS sealed, details FROM payment WHERE nonce = $1`;
const kept = async ({ authorization }: Signed) => (await owner.query(KEPT, [binary(authorization.nonce)])).rows[0];
const NOTHING = { input: null, sealed: false, details: null };

/** Vacuums halfway through, as PostgreSQL would do minutes later. */
async function flood(times: number, one: () => Promise<void>): Promise<void> {
  for (let done = 0; done < times; done += TOGETHER) {
    if (done === times / 2) await owner.query("VACUUM payment");
    await Promise.all(Array.from({ length: TOGETHER }, one));
  }
}

test("A refused payment leaves less than 1 KiB, even with the longest signature, body, and identifier", async () => {
  // The first pages of the table and its indexes are not part of the cost per row.
  await owner.query(refusedRows(1_000));
  const refuse = async (): Promise<void> => {
    const [payment, token] = [longPayment(), randomUUID()];
    expect(await journal.insert(payment, token)).toBe(1);
    expect(await journal.write(payment.key, token, WRITES.refuse)).toBe(1);
  };
  const before = await tableBytes(owner, "payment");
  await flood(MANY, refuse);
  const each = ((await tableBytes(owner, "payment")) - before) / MANY;
  expect(each).toBeLessThan(KIB);
});

test("Pruning refused payments an hour after their windows frees their space and keeps all other payments", async () => {
  const refuse = () => owner.query(refusedRows(20_000));
  await owner.query("TRUNCATE payment");
  const empty = await tableBytes(owner, "payment");
  await refuse();
  const full = await tableBytes(owner, "payment");
  const kept = newPayment();
  await journal.insert(kept, randomUUID());
  await owner.query(
    "UPDATE payment SET reason = 'reversed' WHERE nonce = (SELECT min(nonce) FROM payment WHERE state = 'void')",
  );
  const pruned: number[] = [];
  for (let rows = await journal.prune(); rows > 0; rows = await journal.prune()) pruned.push(rows);
  expect(pruned).toEqual([...Array(19).fill(1_000), 999]);
  expect((await owner.query("SELECT state, reason FROM payment ORDER BY state")).rows).toEqual([
    { state: "received", reason: null },
    { state: "void", reason: "reversed" },
  ]);
  await owner.query("DELETE FROM payment");
  // A vacuum empties an index page; the next vacuum makes the page available to new rows.
  await owner.query("VACUUM payment");
  await owner.query("SELECT pg_current_xact_id()");
  // Autovacuum may hold the table, or an older snapshot its rows.
  const bytesAfterVacuum = async () => {
    await owner.query("VACUUM payment");
    return (await owner.query("SELECT pg_relation_size('payment')::int AS bytes")).rows[0]?.bytes;
  };
  await expect.poll(bytesAfterVacuum).toBe(0);
  // New rows reuse the space that the indexes still occupy.
  await refuse();
  expect((await tableBytes(owner, "payment")) - empty).toBeLessThan((full - empty) * 1.05);
  await owner.query("TRUNCATE payment");
});

test("Only a payment that was never submitted is pruned, an hour after its window", async () => {
  const now = unixNow();
  const hour = 3_600n;
  const enter = async (route: string, validBefore: bigint) => {
    const [payment, token] = [newPayment({ route, validBefore }), randomUUID()];
    await journal.insert(payment, token);
    return { payment, key: payment.key, token };
  };
  const over = await enter("over for an hour", now - hour - 5n);
  const almost = await enter("over for almost an hour", now - hour + 60n);
  const open = await enter("not over", now + hour);
  for (const { key, token } of [over, almost, open]) await journal.release(key, token, false);
  await enter("a request is working on it", now - hour - 5n);
  const { payment: kept, key, token } = await enter("submitted", now - hour - 5n);
  await journal.write(key, token, { ...WRITES.leave, kept });
  expect(await journal.prune()).toBe(1);
  const { rows } = await owner.query("SELECT route FROM payment ORDER BY route");
  expect(rows.map(({ route }) => route)).toEqual([
    "a request is working on it",
    "not over",
    "over for almost an hour",
    "submitted",
  ]);
});

/** An ERC-1271 wallet may use any bytes as its signature, and a scheme may add details of any length. */
const longPayment = () =>
  newPayment({
    paymentId: storedIdentifier(randomBytes(64).toString("hex")),
    signature: hex(4 * KIB),
    input: { text: randomBytes(45 * KIB).toString("base64") },
    details: { text: randomBytes(400).toString("base64") },
    route: "arbiter.verify.scored",
  });

describe("Input and signature of a payment", () => {
  test("A refused payment's body and signature are not stored", async () => {
    const signed = await signRound(await newPayer(chain, 0n));
    expectPaymentRequired(await buyRound(signed));
    expect(await kept(signed)).toEqual({ state: "void", ...NOTHING });
  });

  test("A settled payment's input is stored, and a route without input stores no part of the body", async () => {
    const [payer, drinker] = [await newPayer(chain), await newPayer(chain)];
    const signed = await signRound(payer);
    expect((await buyRound(signed)).status).toBe(200);
    expect(await kept(signed)).toEqual({ state: "fulfilled", input: { nickname: "Ada" }, sealed: true, details: null });
    const espresso = await signPayment(drinker, { value: MENU.espresso.price }, SEPOLIA);
    expect((await order("espresso", espresso, { long: "x".repeat(KIB) })).status).toBe(200);
    expect(await kept(espresso)).toEqual({ state: "fulfilled", input: null, sealed: true, details: null });
  });
});

test("An expired payment's input, signature, and details are erased", async () => {
  const token = randomUUID();
  const payment = newPayment({ input: { nickname: "Ada" }, details: { deadline: 7 } });
  await journal.insert(payment, token);
  await journal.write(payment.key, token, { ...WRITES.leave, kept: payment });
  const row = async () => (await owner.query(KEPT, [binary(payment.key.nonce)])).rows[0];
  const { input, details } = payment;
  expect(await row()).toEqual({ state: "settling", input, sealed: true, details });
  await journal.write(payment.key, token, WRITES.expire);
  expect(await row()).toEqual({ state: "void", ...NOTHING });
});

describe("A retry whose row has no stored input", () => {
  test("A retry after a crash before submission is fulfilled from its own body", async () => {
    const payer = await newPayer(chain, 0n);
    const signed = await signRound(payer);
    expectPaymentRequired(await buyRound(signed));
    // Restores the row as it was before the refusal was written.
    await owner.query("UPDATE payment SET state = 'received', reason = NULL WHERE nonce = $1", [
      binary(signed.authorization.nonce),
    ]);
    await nothingCharged(chain, payer);
    await chain.fund(payer.address, signed.authorization.value);
    const answer = await buyRound(signed);
    expect({ status: answer.status, body: answer.body }).toMatchObject({ status: 200 });
    expect(answer.body.your_round).toMatchObject({ nickname: "Ada" });
    await chargedOnce(chain, signed);
  });

  test("A retry after a refusal is fulfilled if the payer had the authorization settled anyway", async () => {
    const payer = await newPayer(chain, 0n);
    const signed = await signRound(payer);
    expectPaymentRequired(await buyRound(signed));
    await chain.fund(payer.address, signed.authorization.value);
    await broadcast(chain, signed);
    const answer = await buyRound(signed);
    expect({ status: answer.status, body: answer.body }).toMatchObject({ status: 200 });
    expect(answer.body.your_round).toMatchObject({ nickname: "Ada" });
    expect(await kept(signed)).toMatchObject({ state: "fulfilled", input: { nickname: "Ada" }, sealed: true });
  });
});
