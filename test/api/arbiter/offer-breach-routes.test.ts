import type { Address, Hex, LocalAccount } from "viem";
import { generatePrivateKey, privateKeyToAccount } from "viem/accounts";
import { describe, expect, test } from "vitest";
import type { VerdictDocument } from "../../../api/arbiter/document.ts";
import { MULTICALL3 } from "../../../api/platform/chain/read-at-block.ts";
import { didDocument, didWeb, keyUrl } from "../../../api/platform/signing/did.ts";
import { COMMERCE_PAYMENTS } from "../../../contracts/commerce-payments.ts";
import { replayVerdict } from "../../../packages/verifier/src/index.ts";
import { withClient } from "../../../scripts/embedded/postgres.ts";
import { KEY } from "../../packages/verifier/samples.ts";
import { buyVerdict, type Claim, handIn } from "../../support/arbiter/scene.ts";
import { jws, type SignedTerms, type Terms, typed } from "../../support/arbiter/signed-terms.ts";
import { forFile } from "../../support/for-file.ts";
import { serveHttp } from "../../support/http-server.ts";
import { broadcast, nothingCharged } from "../../support/payments/on-chain.ts";
import { type Answer, v2 } from "../../support/payments/requests.ts";
import { BASE, newPayer, signPayment, unixNow } from "../../support/payments/signing.ts";
import { type ApiProcess, startApiStage } from "../../support/service/api-process.ts";

const PATIENT = { timeout: 30_000, interval: 20 };
const stage = await forFile(startApiStage());
const { chain } = stage;
let document = "{}";
const shop = await forFile(serveHttp((_request, response) => void response.end(document), "localhost"));
const did = didWeb(shop.url);
document = JSON.stringify(didDocument(did, [KEY.publicJwk]));
const HEADER = { alg: "EdDSA", kid: keyUrl(did, KEY.publicJwk) };
await stage.lockCommitsOf("verdict");

const start = () => stage.start({ url: chain.rpcUrl }, { ARBITER_ALLOWED_ORIGINS: shop.url });
let api = await start();
const other = await start();

/** A purchase with the seller's receipt and offer. */
interface Purchase {
  readonly buyer: LocalAccount;
  readonly transaction: Hex;
  readonly claim: Claim;
}

const seller = privateKeyToAccount(generatePrivateKey());

/** Pays and gets the receipt. By default, the seller's offer was for 0.25 USDC. */
async function purchase({
  paid,
  to = seller.address,
  offer = {},
  byHost = false,
}: {
  readonly paid: bigint;
  readonly to?: Address;
  readonly offer?: Partial<Record<string, string | number>>;
  readonly byHost?: boolean;
}): Promise<Purchase> {
  const buyer = await newPayer(chain);
  const signed = await signPayment(buyer, { to: to.toLowerCase() as Address, value: paid });
  const transaction = await broadcast(chain, signed);
  const now = Number(unixNow());
  const resourceUrl = `${shop.url}/haiku`;
  const { id: network, usdc } = BASE;
  const terms = { scheme: "exact", network, asset: usdc.address, payTo: seller.address, amount: "250000" };
  const offered = { version: 1, resourceUrl, ...terms, validUntil: now + 3_600, ...offer } as Terms;
  const receipted = { version: 1, network, resourceUrl, payer: buyer.address, issuedAt: now, transaction };
  const sign = (kind: "Offer" | "Receipt", payload: Terms): SignedTerms | Promise<SignedTerms> =>
    byHost ? jws(KEY, HEADER, payload) : typed(seller, kind, payload);
  const conditions = {
    offer: await sign("Offer", offered),
    receipt: await sign("Receipt", receipted),
    settlement: { network, transaction },
  };
  return { buyer, transaction, claim: { category: "offer-breach", conditions } };
}

const DEAR = { paid: 1_000_000n };

async function claimed({ buyer, claim }: Purchase, at: ApiProcess = api): Promise<VerdictDocument> {
  const { answer } = await buyVerdict(at, buyer, claim);
  expect([answer.status, answer.text]).toEqual([200, expect.any(String)]);
  return answer.body as unknown as VerdictDocument;
}

/** The conditions that are not true. */
const undecided = ({ facts }: VerdictDocument) =>
  facts.flatMap((one) =>
    one.fact === "condition" && one.result !== "true" && one.reason !== "not_judged"
      ? [`${one.condition} ${one.result} ${one.reason}`]
      : [],
  );

const holdersOf = async ({ transaction }: Purchase) =>
  (
    await stage.owner.query<{ verdict: string }>("SELECT verdict FROM verdict_transfer WHERE tx = decode($1, 'hex')", [
      transaction.slice(2),
    ])
  ).rows.map(({ verdict }) => verdict);

describe("agent that claims a breach", () => {
  test("A charge above the offer is refunded, and the evidence replays to the same verdict without the service", async () => {
    const bought = await purchase(DEAR);
    await chain.finalize();
    const verdict = await claimed(bought);
    expect([verdict.verdict, verdict.policy_version, undecided(verdict)]).toEqual(["refund", 2, ["amount false more"]]);
    const [payer, payee] = [bought.buyer.address, seller.address].map((one) => one.toLowerCase());
    expect(verdict.parties).toEqual({ payer: { wallet: payer }, payee: { wallet: payee } });
    expect(verdict.timeline.map(({ source }) => source)).toEqual(["signatures", "transaction"]);
    expect(await replayVerdict(JSON.stringify(verdict))).toMatchObject({ same: true, computed: "refund" });
    expect(await holdersOf(bought)).toEqual([verdict.id]);
  });

  test.each([
    ["base/commerce-payments", COMMERCE_PAYMENTS.collector],
    ["a contract that the service does not know", MULTICALL3],
  ] as const)(
    "A hold in %s is no breach of an exact offer for the same URL, and the evidence replays to the same verdict",
    async (_, custody) => {
      const bought = await purchase({ paid: 1_000_000n, to: custody });
      await chain.finalize();
      const verdict = await claimed(bought);
      expect([verdict.verdict, undecided(verdict)]).toEqual(["escalate", ["settlement unknown paid_to_contract"]]);
      const transfer = { fact: "transfer", to: custody.toLowerCase(), by_authorization: true, to_has_code: true };
      expect(verdict.facts).toContainEqual(expect.objectContaining(transfer));
      expect(await replayVerdict(JSON.stringify(verdict))).toMatchObject({ same: true, computed: "escalate" });
      expect(await holdersOf(bought)).toEqual([]);
    },
  );

  test("A payment as offered, signed with the key on the seller's host, is released, and a second claim escalates", async () => {
    const bought = await purchase({ paid: 250_000n, byHost: true });
    await chain.finalize();
    const verdict = await claimed(bought);
    expect([verdict.verdict, undecided(verdict)]).toEqual(["release", []]);
    expect(await replayVerdict(JSON.stringify(verdict))).toMatchObject({ same: true, computed: "release" });
    const again = await claimed(bought, other);
    expect([again.verdict, undecided(again)]).toEqual(["escalate", ["settlement unknown decided_before"]]);
    expect(again.facts).toContainEqual({ fact: "decided_before", verdict: verdict.id });
    expect(await replayVerdict(JSON.stringify(again))).toMatchObject({ same: true, computed: "escalate" });
  });

  test("A claim on another buyer's receipt is rejected without a charge", async () => {
    const bought = await purchase(DEAR);
    await chain.finalize();
    const stranger = await newPayer(chain);
    const answer = await handIn(api, bought.claim, v2(await signPayment(stranger)));
    expect([answer.status, answer.body.errors]).toEqual([
      422,
      [expect.objectContaining({ path: "conditions.receipt", rule: 12 })],
    ]);
    await nothingCharged(chain, stranger);
    const parties = { payer: stranger.address, payee: seller.address };
    const named = await handIn(api, { ...bought.claim, parties }, v2(await signPayment(bought.buyer)));
    expect([named.status, named.body.errors]).toEqual([
      422,
      [expect.objectContaining({ path: "parties", message: "the claim itself names different parties" })],
    ]);
    expect(await holdersOf(bought)).toEqual([]);
  });
});

describe("one decision per transfer", () => {
  test("Six simultaneous claims in two processes yield one refund, and the others escalate", async () => {
    const bought = await purchase(DEAR);
    await chain.finalize();
    const verdicts = await Promise.all([api, other, api, other, api, other].map((at) => claimed(bought, at)));
    const refunds = verdicts.filter(({ verdict }) => verdict === "refund");
    expect(refunds).toHaveLength(1);
    expect(await holdersOf(bought)).toEqual([refunds[0]?.id]);
    for (const one of verdicts.filter(({ verdict }) => verdict !== "refund")) {
      expect([one.verdict, undecided(one)]).toEqual(["escalate", ["settlement unknown decided_before"]]);
      expect(one.facts).toContainEqual({ fact: "decided_before", verdict: refunds[0]?.id });
    }
  });

  test("After SIGKILL before or during the commit, the claim's payment gets the one verdict", async () => {
    const [committed, waiting] = [await purchase(DEAR), await purchase(DEAR)];
    await chain.finalize();
    const paid = await Promise.all([committed, waiting].map(({ buyer }) => signPayment(buyer)));
    const send = (number: 0 | 1, at = api) =>
      handIn(at, [committed, waiting][number]?.claim ?? {}, v2(paid[number] as (typeof paid)[0]));
    await withClient(stage.database.ownerUrl, async (client) => {
      await client.query("SELECT pg_advisory_lock(1)");
      send(0).catch(() => undefined);
      await stage.untilBlocked("COMMIT");
      send(1).catch(() => undefined);
      await expect.poll(async () => await stateOf(paid[1]), PATIENT).toMatch(/settled/);
      await api.kill();
    });
    await expect.poll(() => holdersOf(committed), PATIENT).toHaveLength(1);
    await stage.endLeases();
    api = await start();
    for (const number of [0, 1] as const) {
      const answer = await answered(() => send(number));
      const bought = number === 0 ? committed : waiting;
      expect([answer.status, answer.body.verdict]).toEqual([200, "refund"]);
      expect(await holdersOf(bought)).toEqual([answer.body.id]);
      expect((await claimed(bought, other)).verdict).toBe("escalate");
    }
  });
});

const stateOf = async (signed: Awaited<ReturnType<typeof signPayment>> | undefined) =>
  (
    await stage.owner.query<{ state: string }>("SELECT state FROM payment WHERE nonce = decode($1, 'hex')", [
      signed?.authorization.nonce.slice(2),
    ])
  ).rows[0]?.state;

/** Sends the same payment until the response is not a 503. */
async function answered(send: () => Promise<Answer>): Promise<Answer> {
  let answer = await send();
  await expect
    .poll(async () => {
      if (answer.status === 503) answer = await send();
      return answer.status;
    }, PATIENT)
    .not.toBe(503);
  return answer;
}
