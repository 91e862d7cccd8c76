import { privateKeyToAddress } from "viem/accounts";
import { describe, expect, test } from "vitest";
import { eachNetwork, MAIN_NETWORK } from "../../../api/platform/networks.ts";
import { sha256 } from "../../support/arbiter/rows.ts";
import { handIn, startArbiterScene } from "../../support/arbiter/scene.ts";
import { startTestChain } from "../../support/chain/chain.ts";
import { startFaultyNode } from "../../support/chain/nodes.ts";
import { refuse } from "../../support/chain/rpc.ts";
import { deployEscrow, hold, newMerchant } from "../../support/escrow/contract.ts";
import { forFile } from "../../support/for-file.ts";
import { expectProblem } from "../../support/payments/expectations.ts";
import { nothingCharged } from "../../support/payments/on-chain.ts";
import { type Answer, send, type v1, v2 } from "../../support/payments/requests.ts";
import { newPayer, signPayment } from "../../support/payments/signing.ts";
import { ARBITER_KEY } from "../../support/service/environment.ts";
import { RELAYER } from "../../support/service/service.ts";

/** Different from the payee, so that each address is refused for its own reason. */
const FEE_RECIPIENT = "0x00000000000000000000000000000000c0ffee02";
const ARBITER = privateKeyToAddress(ARBITER_KEY);
const ALICE = "0x70997970c51812dc3a010c7d01b50e0d17dc79c8";
const BOB = "0x3c44cdddb6a900fa2b585dd299e03d12fa4293bc";

const chain = await startTestChain();
const node = await forFile(startFaultyNode(chain));
const escrow = await deployEscrow(chain, ARBITER_KEY, FEE_RECIPIENT);
const rpcUrls = { ...eachNetwork(() => chain.rpcUrl), [MAIN_NETWORK]: node.url };
const scene = await forFile(startArbiterScene({ chain, config: { escrowAddresses: [escrow.address], rpcUrls } }));
const demoMerchant = (await send(`${scene.service.url}/escrow/demo`)).body.merchant as `0x${string}`;

const GOOD = { category: "payload-hash", conditions: { payload_text: "x", expected_sha256: sha256("x") } };
const delivered = (url: string, more: object = {}) => ({ category: "http-delivery", conditions: { url, ...more } });

/** Hands in a claim with a valid payment. */
const paid = async (claim: object | string): Promise<Answer> =>
  handIn(scene.service, claim, v2(await signPayment(await newPayer(chain))));

const neverCharged = await newPayer(chain);

/** Hands in a claim with a payment that must not be charged. */
async function kept(claim: object | string, version: typeof v1 | typeof v2 = v2): Promise<Answer> {
  const answer = await handIn(scene.service, claim, version(await signPayment(neverCharged)));
  await nothingCharged(chain, neverCharged);
  return answer;
}

/** The fields and the policy's rules for which a claim is refused. */
async function refusal(claim: object | string) {
  const answer = await kept(claim);
  expectProblem(answer, 422, "unacceptable");
  return answer.body.errors;
}

describe("claims refused before any charge", () => {
  const text = (base: object, json: string) => `${JSON.stringify(base).slice(0, -1)},${json}}`;
  const condition = (json: string) =>
    `{"category":"http-delivery","conditions":${text({ url: "https://shop.example/" }, json)}}`;

  test.each<[string, object | string, string, number]>([
    ["a condition of the name __proto__", condition('"__proto__":{"a":1}'), "conditions.__proto__", 1],
    ["evidence next to the conditions", { ...GOOD, evidence: ["it was fine"] }, "evidence", 3],
    ["a member of the name __proto__", text(GOOD, '"__proto__":{"evidence":1}'), "__proto__", 3],
    [
      "one wallet on both sides",
      { ...GOOD, parties: { payer: ALICE, payee: ALICE.toUpperCase().replace("X", "x") } },
      "parties",
      7,
    ],
  ])("%s is refused by a rule of the policy", async (...[_, claim, path, rule]) => {
    expect(await refusal(claim)).toEqual([{ path, message: expect.any(String), rule }]);
  });

  test.each<[string, () => string]>([
    ["the payee", () => scene.service.config.payTo],
    ["the arbiter", () => ARBITER],
    ["the fee recipient", () => FEE_RECIPIENT],
    ["the demo's merchant", () => demoMerchant],
    ["the facilitator", () => RELAYER.address],
  ])("a deal with %s on either side is refused, in any letter case", async (_, wallet) => {
    const shouted = `0x${wallet().slice(2).toUpperCase()}`;
    for (const [side, parties] of [
      ["payer", { payer: shouted, payee: BOB }],
      ["payee", { payer: ALICE, payee: wallet().toLowerCase() }],
    ] as const) {
      expect(await refusal({ ...GOOD, parties })).toMatchObject([{ path: `parties.${side}`, rule: 7 }]);
    }
  });

  test("Every wrong field is named, and one that cannot be parsed makes the whole claim malformed", async () => {
    const claim = { ...delivered("http://10.0.0.1/", { cookies: "a" }), evidence: 1 };
    expect(await refusal(claim)).toMatchObject([{ rule: 2 }, { rule: 2 }, { rule: 3 }]);
    const mixed = await kept({ ...delivered("http://10.0.0.1/", { min_bytes: "many" }), evidence: 1 });
    expectProblem(mixed, 400, "malformed_request");
    expect(mixed.body.errors).toContainEqual({ path: "conditions.min_bytes", message: expect.any(String) });
  });

  test.each<[string, object | string]>([
    ["an empty deal_ref", { ...GOOD, deal_ref: "" }],
    ["a deal_ref of 121 characters", { ...GOOD, deal_ref: "ü".repeat(121) }],
    ["a deal_ref of two lines", { ...GOOD, deal_ref: "one\ntwo" }],
    ["a deal_ref with half a character", `${JSON.stringify(GOOD).slice(0, -1)},"deal_ref":"\\ud800"}`],
    ["parties that are null", { ...GOOD, parties: null }],
    ["parties in a list", { ...GOOD, parties: [ALICE, BOB] }],
    ["one party", { ...GOOD, parties: { payer: ALICE } }],
    ["a party with a digit too many", { ...GOOD, parties: { payer: `${ALICE}0`, payee: BOB } }],
  ])("%s is a malformed claim", async (_, claim) => {
    const answer = await kept(claim);
    expectProblem(answer, 400, "malformed_request");
    expect(JSON.stringify(answer.body.errors ?? [])).not.toContain('"rule"');
  });
});

describe("deal_ref that names a payment of the service's escrow", () => {
  const terms = { feeReceiver: FEE_RECIPIENT } as const;
  const held = (merchant: `0x${string}`) => hold({ chain, escrow }, merchant, terms);

  test("The demo merchant's payment is refused in any letter case", async () => {
    const { id } = await held(demoMerchant);
    for (const deal_ref of [id, `0X${id.slice(2).toUpperCase()}`]) {
      expect(await refusal({ ...GOOD, deal_ref })).toMatchObject([{ path: "deal_ref", rule: 7 }]);
    }
  });

  test("Parties other than the contract's are refused", async () => {
    const { id, info } = await held(newMerchant().address);
    for (const parties of [
      { payer: info.payer, payee: BOB },
      { payer: info.receiver, payee: info.payer },
    ]) {
      expect(await refusal({ ...GOOD, deal_ref: id, parties })).toMatchObject([{ path: "parties", rule: 7 }]);
    }
  });

  test("An unreachable chain is a 503, and the same payment is accepted afterwards", async () => {
    const { id, info } = await held(newMerchant().address);
    const payer = await newPayer(chain);
    const headers = v2(await signPayment(payer));
    node.become(async (call, pass) =>
      call.method === "eth_getLogs" ? refuse(call, -32000, "a node's message") : pass(call),
    );
    const answer = await handIn(scene.service, { ...GOOD, deal_ref: id }, headers);
    expectProblem(answer, 503, "not_available");
    expect(Number(answer.headers.get("retry-after"))).toBeGreaterThan(0);
    expect(answer.text).not.toContain("a node's message");
    await nothingCharged(chain, payer);
    node.become(null);
    const again = await handIn(scene.service, { ...GOOD, deal_ref: id }, headers);
    expect({ status: again.status, ...again.body }).toMatchObject({
      status: 200,
      deal_ref: id,
      claimant: payer.address.toLowerCase(),
      parties_named_by: "escrow_contract",
      parties: { payer: { wallet: info.payer }, payee: { wallet: info.receiver } },
    });
  });

  test("A reference that no contract knows is an ordinary name", async () => {
    const deal_ref = `0x${"ab".repeat(32)}`;
    const answer = await paid({ ...GOOD, deal_ref, parties: { payer: ALICE, payee: BOB } });
    expect({ status: answer.status, ...answer.body }).toMatchObject({ status: 200, deal_ref });
  });
});

describe("claims in unusual JSON", () => {
  test("A `min_bytes` of minus zero means zero", async () => {
    const json = `{"category":"http-delivery","conditions":{"url":"${scene.shop}/report","min_bytes":-0}}`;
    const answer = await paid(json);
    expect({ status: answer.status, ...answer.body }).toMatchObject({ status: 200, verdict: "release" });
  });
});
