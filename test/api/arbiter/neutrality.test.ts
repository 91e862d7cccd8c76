import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { createArbiter } from "../../../api/arbiter/arbiter.ts";
import type { verdictDocument } from "../../../api/arbiter/document.ts";
import type { PartyTiers, Tiers } from "../../../api/arbiter/parties.ts";
import type { Variant } from "../../../api/arbiter/products.ts";
import { requestSchema, type VerdictRequest } from "../../../api/arbiter/request.ts";
import { connect } from "../../../api/platform/db/connection.ts";
import type { Sale } from "../../../api/platform/http/route.ts";
import type { Hex } from "../../../api/platform/wallet.ts";
import { type ArbiterScene, recordParts, startArbiterScene } from "../../support/arbiter/scene.ts";
import { CLAIMS } from "../../support/arbiter/site.ts";
import { deciderOf } from "../../support/arbiter/verdicts.ts";
import { forFile } from "../../support/for-file.ts";
import { PRICES } from "../../support/payments/prices.ts";

type VerdictDocument = ReturnType<typeof verdictDocument>;

const PARTIES = {
  payer: "0x70997970c51812dc3a010c7d01b50e0d17dc79c8",
  payee: "0x3c44cdddb6a900fa2b585dd299e03d12fa4293bc",
} as const;

const scene = await forFile(startArbiterScene({ jobs: false }));
const pool = await forFile(connect(scene.service.database.apiUrl));

const scores = (tiers: PartyTiers | null): Tiers => ({
  prepare: async () => null,
  ready: async () => tiers !== null,
  of: async () => tiers ?? Promise.reject(new Error("the index is down")),
});

/** The service's arbiter, with these scores for the parties. */
const arbiterWith = async (tiers: PartyTiers | null) => {
  const parts = await recordParts(scene.service, pool, { tiers: scores(tiers) });
  const arbiter = createArbiter({ ...parts, deals: { parties: async () => null }, ownWallets: [] });
  return { ...arbiter, decideAlone: deciderOf(arbiter, parts.store, pool) };
};

let sold = 0n;
/** A sale of this claim under a new payment. */
const saleOf = (input: VerdictRequest): Sale<VerdictRequest> => ({
  input,
  payment: {
    network: "eip155:8453",
    asset: scene.chain.network.usdc.address,
    payer: PARTIES.payer,
    nonce: `0x${(++sold).toString(16).padStart(64, "0")}` as Hex,
  },
  version: "v2",
  payTo: scene.service.config.payTo,
  value: PRICES.scoredVerdict,
  validAfter: 0n,
  validBefore: 0n,
  receivedAt: new Date(),
  details: null,
  settlement: { transaction: "0x", block: 1 },
  signal: new AbortController().signal,
});

function requestOf(claim: ArbiterScene["claims"][number] | undefined): VerdictRequest {
  const settings = { ...CLAIMS, allowedOrigins: [scene.shop], ownWallets: [] };
  const { category, conditions } = claim ?? {};
  return requestSchema(settings).parse({ category, conditions, deal_ref: "deal 7", parties: PARTIES });
}

async function documentOf(
  request: VerdictRequest,
  tiers: PartyTiers | null,
  variant: Variant,
): Promise<VerdictDocument> {
  const { decideAlone } = await arbiterWith(tiers);
  return JSON.parse((await decideAlone(saleOf(request), variant)).document);
}

/** The parts of a verdict that an escrow system acts on. */
const decisionOf = ({ verdict, facts, conditions_sha256, deal_ref, policy_version, attestation }: VerdictDocument) => ({
  verdict,
  facts,
  conditions_sha256,
  deal_ref,
  policy_version,
  outcome: attestation.message.outcome,
  conditions: attestation.message.conditionsSha256,
  deal: attestation.message.dealRefHash,
});

const anyParty = <Wallet extends Hex>(wallet: Wallet) =>
  fc.record({
    wallet: fc.constant(wallet),
    score: fc.integer({ min: 0, max: 100 }),
    tier: fc.constantFrom("A", "B", "C", "D", "E", "F", "unrated"),
  });
const anyTiers = fc.record({ payer: anyParty(PARTIES.payer), payee: anyParty(PARTIES.payee) });

describe("neutrality", () => {
  test("The decision is the same for any score or tier of either party, and for none", async () => {
    const plain = await Promise.all(
      scene.claims.map(async (claim) => decisionOf(await documentOf(requestOf(claim), null, "plain"))),
    );
    expect(plain.map(({ verdict }) => verdict)).toEqual(scene.claims.map(({ verdict }) => verdict));
    const claims = fc.integer({ min: 0, max: scene.claims.length - 1 });
    await fc.assert(
      fc.asyncProperty(claims, anyTiers, async (number, tiers) => {
        const scored = await documentOf(requestOf(scene.claims[number]), tiers, "scored");
        expect(scored.parties).toEqual(tiers);
        expect(decisionOf(scored)).toEqual(plain[number]);
      }),
      { numRuns: 100 },
    );
  }, 30_000);

  test("Scores are read after the decision: without them there is no scored verdict, and once stored it never changes", async () => {
    const sale = saleOf(requestOf(scene.claims[0]));
    const away = await arbiterWith(null);
    expect(await away.admit(sale.input, { payer: PARTIES.payer, variant: "scored" })).toEqual({
      unavailable: expect.any(String),
    });
    expect(await away.admit(sale.input, { payer: PARTIES.payer, variant: "plain" })).toEqual({ input: sale.input });
    await expect(away.decide(sale, "scored")).rejects.toThrow("the index is down");
    const tiers = {
      payer: { wallet: PARTIES.payer, score: 3, tier: "F" },
      payee: { wallet: PARTIES.payee, score: 99, tier: "A" },
    };
    const there = await arbiterWith(tiers);
    const first = await there.decideAlone(sale, "scored");
    expect(JSON.parse(first.document)).toMatchObject({ verdict: scene.claims[0]?.verdict, parties: tiers });
    const again = { ...tiers, payee: { ...tiers.payee, score: 50 } };
    const later = await arbiterWith(again);
    await expect(later.decideAlone(sale, "scored")).rejects.toThrow(/verdict_pkey/);
    expect(await later.get(first.id)).toEqual(first);
  });

  test("A scored verdict needs both parties", async () => {
    const arbiter = await arbiterWith(null);
    const request = { ...requestOf(scene.claims[0]), parties: null };
    expect(await arbiter.admit(request, { payer: PARTIES.payer, variant: "scored" })).toMatchObject({
      refused: [{ path: "parties", rule: 7 }],
    });
  });
});
