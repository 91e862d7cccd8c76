import { gzipSync } from "node:zlib";
import { type Address, type LocalAccount, zeroHash } from "viem";
import { describe, expect, test } from "vitest";
import { eachNetwork } from "../../../api/platform/networks.ts";
import { withClient } from "../../../scripts/embedded/postgres.ts";
import { startTestChain } from "../../support/chain/chain.ts";
import { startFaultyNode } from "../../support/chain/nodes.ts";
import {
  deployEscrow,
  type EscrowScene,
  type Held,
  hold,
  holdTogether,
  newMerchant,
  PATIENT,
  requestedOutcomes,
  statusOf,
} from "../../support/escrow/contract.ts";
import { deliver, forwarded, GOOD, headersOf, type Sent, signDelivery, verify } from "../../support/escrow/delivery.ts";
import { eventually } from "../../support/eventually.ts";
import { forFile } from "../../support/for-file.ts";
import { expectProblem } from "../../support/payments/expectations.ts";
import { send } from "../../support/payments/requests.ts";
import { deployWallet } from "../../support/payments/wallets.ts";
import { binary } from "../../support/service/database.ts";
import { startService } from "../../support/service/service.ts";

const chain = await forFile(startTestChain());
const escrow = await deployEscrow(chain);
const service = await forFile(startService({ chain, config: { escrowAddresses: [escrow.address] } }));

describe("delivery with signed headers", () => {
  const merchant = newMerchant();
  const newHold = () => hold({ chain, escrow }, merchant.address);

  const GZIP: Sent = { contentType: "application/json", contentEncoding: "gzip", body: gzipSync('{"haiku":"pond"}') };
  const written = ({ status = 200, body, ...headers }: Sent) => ({
    status,
    headers: headersOf({ body, ...headers }),
    body,
  });
  const deliverSent = (held: Held, signed: Sent, sent: Sent = signed) =>
    deliver(service, merchant, { id: held.id, ...written(signed), sent: written(sent) });

  test("Compressed JSON is released, and its record names the coding", async () => {
    const held = await newHold();
    const { body } = await deliverSent(held, GZIP);
    expect(body).toMatchObject({ decision: "release", rule: "delivered" });
    expect((await send(String(body.record_url))).body).toMatchObject({
      evaluation_version: 1,
      delivery: { content_type: "application/json", content_encoding: "gzip", body_bytes: GZIP.body.length },
    });
    await eventually(() => statusOf({ chain, escrow }, held), "released" as const);
  });

  test.each<[string, Sent]>([
    ["content type", { ...GZIP, contentType: "text/plain" }],
    ["content type, left out,", { contentEncoding: "gzip", body: GZIP.body }],
    ["coding", { ...GZIP, contentEncoding: "br" }],
    ["coding, left out,", { contentType: "application/json", body: GZIP.body }],
  ])("A changed %s does not match the merchant's signature", async (_, sent) => {
    const held = await newHold();
    expectProblem(await deliverSent(held, GZIP, sent), 403, "not_the_merchant");
    expect(await statusOf({ chain, escrow }, held)).toBe("held");
  });

  test("A decompression bomb and a body that does not match its coding are refunded", async () => {
    const bomb = { ...GZIP, body: gzipSync(Buffer.alloc(64 * 1024 * 1024, "{}")) };
    expect((await deliverSent(await newHold(), bomb)).body).toMatchObject({ decision: "refund", rule: "undecodable" });
    const lie = { ...GZIP, body: '{"haiku":"pond"}' };
    expect((await deliverSent(await newHold(), lie)).body).toMatchObject({ decision: "refund", rule: "undecodable" });
  });

  test.each([
    [422, "refused_input"],
    [500, "error_status"],
  ])("A %i is %s, and only rejected input is refunded without a record on chain", async (status, rule) => {
    const held = await newHold();
    const { body } = await deliverSent(held, { status, contentType: "application/json", body: '{"error":"no"}' });
    expect(body).toMatchObject({ decision: "refund", rule });
    await eventually(() => statusOf({ chain, escrow }, held), "refunded" as const);
    // The index counts a refund against the merchant only if it has a record.
    const record = rule === "refused_input" ? zeroHash : body.record;
    expect(await requestedOutcomes({ chain, escrow }, held)).toMatchObject([{ decision: "refund", event: { record } }]);
    expect((await send(String(body.record_url))).body).toMatchObject({ rule, decision: "refund" });
  });
});

describe("hold named by its transaction", () => {
  // Holds share transactions, so the transaction in a delivery can belong to several payments.

  const scene: EscrowScene = { chain, escrow };

  /** Forwards a delivery that the merchant signed for one payment, with the transaction of its hold. */
  const deliverByTransaction = async (merchant: LocalAccount, { id, transaction }: Pick<Held, "id" | "transaction">) =>
    verify(service, {
      transaction,
      ...forwarded(GOOD),
      signature: await signDelivery(service, merchant, { id, ...GOOD }),
    });

  async function isDecided({ id }: Held): Promise<boolean> {
    const text = "SELECT FROM escrow_evaluation WHERE payment = $1";
    return withClient(service.database.ownerUrl, async (db) => (await db.query(text, [binary(id)])).rowCount === 1);
  }
  const decided = async (holds: readonly Held[]) => Promise.all(holds.map(isDecided));

  /** A contract that accepts any signature as its own (ERC-1271). */
  async function anyonesWallet(last: string): Promise<Address> {
    const address: Address = `0x${last.padStart(40, "a")}`;
    await chain.client.setCode({ address, bytecode: "0x631626ba7e60e01b60005260206000f3" });
    return address;
  }

  const aboutOthers = (answer: Awaited<ReturnType<typeof verify>>, holds: readonly Pick<Held, "id">[]) => {
    expectProblem(answer, 422, "unacceptable");
    for (const { id } of holds) expect(answer.body.detail).toContain(id);
  };

  test("A delivery belongs to the payment whose merchant signed it, wherever its hold is in the transaction", async () => {
    const [one, other] = [newMerchant(), newMerchant()];
    const holds = await holdTogether(scene, [one.address, other.address, one.address]);
    const [first, second, third] = holds as [Held, Held, Held];
    expect(await deliverByTransaction(one, third)).toMatchObject({ status: 200, body: { payment_id: third.id } });
    expect(await decided(holds)).toEqual([false, false, true]);
    expect(await deliverByTransaction(other, second)).toMatchObject({ status: 200, body: { payment_id: second.id } });
    expect(await decided(holds)).toEqual([false, true, true]);
    await expect
      .poll(() => Promise.all(holds.map((held) => statusOf(scene, held))), PATIENT)
      .toEqual(["held", "released", "released"]);
    // The buyer of the first payment signs for it.
    expectProblem(await deliverByTransaction(first.buyer, first), 403, "not_the_merchant");
    expect(await isDecided(first)).toBe(false);
  });

  test("A contract that accepts any signature does not get a delivery that an account signed", async () => {
    const honest = newMerchant();
    const holds = await holdTogether(scene, [await anyonesWallet("1"), honest.address, await anyonesWallet("2")]);
    const own = holds[1] as Held;
    expect(await deliverByTransaction(honest, own)).toMatchObject({ status: 200, body: { payment_id: own.id } });
    expect(await decided(holds)).toEqual([false, true, false]);
  });

  test("Contract merchants validate signatures themselves, and if two accept one, the response lists the payments and decides none", async () => {
    const [owner, other] = [newMerchant(), newMerchant()];
    const wallets = [
      (await deployWallet(chain, owner.address)).address,
      (await deployWallet(chain, other.address)).address,
    ];
    const holds = await holdTogether(scene, [newMerchant().address, ...wallets]);
    const [, own, others] = holds as [Held, Held, Held];
    expect(await deliverByTransaction(owner, own)).toMatchObject({ status: 200, body: { payment_id: own.id } });
    expect(await decided(holds)).toEqual([false, true, false]);
    // The owner's signature is not valid for another payment in the same transaction.
    expectProblem(await deliverByTransaction(owner, { ...others }), 403, "not_the_merchant");

    const mixed = await holdTogether(scene, [await anyonesWallet("3"), wallets[1] as Address, newMerchant().address]);
    const meant = mixed[1] as Held;
    aboutOthers(await deliverByTransaction(other, meant), mixed);
    expect(await decided(mixed)).toEqual([false, false, false]);
    expect((await deliver(service, other, { id: meant.id, ...GOOD })).status).toBe(200);
    expect(await decided(mixed)).toEqual([false, true, false]);
  });

  test("With too many contracts to ask, the response lists the payments, but an account's signature is still recognized", async () => {
    const [merchant, stranger] = [newMerchant(), newMerchant()];
    const crowd: Address[] = [];
    while (crowd.length < 16) crowd.push(await anyonesWallet("4"));
    const holds = await holdTogether(scene, [...crowd, merchant.address]);
    const own = holds.at(-1) as Held;
    aboutOthers(await deliverByTransaction(stranger, own), holds);
    expect(new Set(await decided(holds))).toEqual(new Set([false]));
    expect(await deliverByTransaction(merchant, own)).toMatchObject({ status: 200, body: { payment_id: own.id } });
  });
});

describe("calls of unpaid requests", async () => {
  // The calls to the node that unpaid requests from strangers can cause.

  // No block becomes final, so the outcomes' blocks are read on every run.
  const chain = await forFile(startTestChain({ slotsInAnEpoch: 64 }));
  const [current, earlier] = [await deployEscrow(chain), await deployEscrow(chain)];
  const node = await forFile(startFaultyNode(chain));
  const rpcUrls = eachNetwork(() => node.url);
  const escrowAddresses = [current.address, earlier.address];
  const service = await forFile(startService({ chain, jobs: false, config: { rpcUrls, escrowAddresses } }));

  async function callsOf(work: () => Promise<unknown>): Promise<number> {
    let calls = 0;
    node.become((call, pass) => {
      calls++;
      return pass(call);
    });
    await work();
    node.become(null);
    return calls;
  }

  const SIGNATURE = `0x${"11".repeat(65)}`;
  const forward = (body: object) =>
    send(`${service.url}/escrow/verify`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ responseBody: "{}", ...body }),
    });
  const unknown = (digit: string) => `0x${digit.repeat(64)}`;

  test("An unknown payment costs one call, and a flood of requests for it shares its calls", async () => {
    const payment = { payment_id: unknown("1"), signature: SIGNATURE };
    expect(await callsOf(async () => expectProblem(await forward(payment), 404, "not_found"))).toBe(1);
    const flood = () =>
      Promise.all(Array.from({ length: 50 }, () => forward({ ...payment, payment_id: unknown("2") })));
    // One call per half second that the flood lasts.
    expect(await callsOf(flood)).toBeLessThan(10);
    expect(await callsOf(() => forward({ transaction: unknown("3"), signature: SIGNATURE }))).toBe(1);
  });

  test("A flood of different unknown payments shares its calls", async () => {
    const ids = Array.from({ length: 60 }, (_, n) => `0x${String(n).padStart(64, "5")}`);
    const flood = () =>
      Promise.all(
        ids.map(async (payment_id) =>
          expectProblem(await forward({ payment_id, signature: SIGNATURE }), 404, "not_found"),
        ),
      );
    expect(await callsOf(flood)).toBeLessThan(ids.length / 2);
  });

  test("Terms without their merchant's signature cost one read of the merchant's code, once", async () => {
    const account = `0x${"12".repeat(20)}`;
    const paymentInfo = {
      operator: current.address,
      payer: account,
      receiver: account,
      token: chain.network.usdc.address,
      maxAmount: "1000000",
      preApprovalExpiry: 1,
      authorizationExpiry: 1,
      refundExpiry: 1,
      minFeeBps: 100,
      maxFeeBps: 100,
      feeReceiver: account,
      salt: "1",
    };
    const ask = async () =>
      expectProblem(await forward({ paymentInfo, signature: SIGNATURE }), 403, "not_the_merchant");
    expect(await callsOf(ask)).toBeLessThanOrEqual(1);
    expect(await callsOf(ask)).toBe(0);
  });

  test("An unsigned forward costs no call", async () => {
    for (const name of ["payment_id", "transaction"]) {
      const ask = async () => expectProblem(await forward({ [name]: unknown("4") }), 403, "not_the_merchant");
      expect(await callsOf(ask)).toBe(0);
    }
  });
});
