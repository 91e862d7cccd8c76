import {
  type Hex,
  type LocalAccount,
  parseSignature,
  serializeCompactSignature,
  serializeErc6492Signature,
  signatureToCompactSignature,
} from "viem";
import { describe, expect, test } from "vitest";
import type { Authorization } from "../../../api/platform/chain/view.ts";
import { Problem } from "../../../api/platform/http/errors.ts";
import type { Address } from "../../../api/platform/wallet.ts";
import { decide, type Seen } from "../../../api/settlement-status/decide.ts";
import { type Question, questionOf } from "../../../api/settlement-status/question.ts";
import type { NonceEnd } from "../../../api/settlement-status/reading.ts";
import { startBaseLike } from "../../support/base-like/base-like.ts";
import { forFile } from "../../support/for-file.ts";
import { expectProblem } from "../../support/payments/expectations.ts";
import { nothingCharged } from "../../support/payments/on-chain.ts";
import {
  authorization,
  newPayer,
  signAuthorization,
  signReceiveAuthorization,
} from "../../support/payments/signing.ts";
import { deployWallet } from "../../support/payments/wallets.ts";
import { startService } from "../../support/service/service.ts";
import { statementsOf, wire } from "../../support/settlement-status/statements.ts";

const HASH = `0x${"ab".repeat(32)}` as const;
const [PAYER, PAYEE, OTHER] = ["11", "22", "33"].map((byte) => `0x${byte.repeat(20)}` as const) as [
  `0x${string}`,
  `0x${string}`,
  `0x${string}`,
];
/** Valid in blocks from second 1,001 to second 1,999. */
const WHOLE: Question = {
  network: "eip155:8453",
  from: PAYER,
  nonce: HASH,
  to: PAYEE,
  value: 250_000n,
  validAfter: 1_000n,
  validBefore: 2_000n,
  transaction: null,
};
const NAMED: Question = { ...WHOLE, to: null, value: null, validAfter: null, validBefore: null };

const asOf = (time: bigint) => ({ number: 50, time });
const final = (time: bigint) => ({ number: 40, time, hash: HASH });
const unused = (time: bigint, unusedBefore: bigint | null): Seen => ({
  nonce: "unused",
  reading: { used: false, at: asOf(time) },
  unusedBefore: unusedBefore === null ? null : final(unusedBefore),
});
const end = (time: bigint, transfer: NonceEnd["transfer"]): NonceEnd => ({
  transaction: HASH,
  block: { number: 45, hash: HASH, time },
  transfer,
});
const paid = (time: bigint, { to = PAYEE, value = 250_000n } = {}): Seen => ({
  nonce: "used",
  asOf: asOf(5_000n),
  end: end(time, { to, value }),
  isFinal: true,
});

test.each([
  ["before its window", WHOLE, unused(1_000n, null), { status: "pending", window: "not_yet" }],
  ["at the first second of its window", WHOLE, unused(1_001n, null), { status: "pending", window: "open" }],
  ["at the last second of its window", WHOLE, unused(1_999n, null), { status: "pending", window: "open" }],
  ["after its window, nothing final", WHOLE, unused(2_000n, null), { status: "pending", window: "closed" }],
  ["after its window, a final block at its end", WHOLE, unused(2_900n, 2_000n), { status: "expired", final: true }],
  ["with nothing known of its window", NAMED, unused(9_000n, null), { status: "pending", window: "unknown" }],
] as const)("An unused authorization has the right status: %s", (...[, question, seen, expected]) => {
  expect(decide(question, seen)).toMatchObject(expected);
});

test.each([
  ["in its window", WHOLE, paid(1_999n), "settled"],
  ["in the first second of its window", WHOLE, paid(1_001n), "settled"],
  ["too early for its window", WHOLE, paid(1_000n), "replaced"],
  ["for another payee", WHOLE, paid(1_500n, { to: OTHER }), "replaced"],
  ["for another value", WHOLE, paid(1_500n, { value: 250_001n }), "replaced"],
  ["for any transfer, if only payer and nonce are known", NAMED, paid(9_999n, { to: OTHER, value: 1n }), "settled"],
] as const)("An authorization used %s has the right final status", (...[, question, seen, status]) => {
  expect(decide(question, seen)).toMatchObject({ status, final: true });
});

test("A nonce used at or after the end of the window proves that the authorization expired, once the use is final", () => {
  for (const transfer of [{ to: PAYEE, value: 250_000n }, null]) {
    const late: Seen = { nonce: "used", asOf: asOf(5_000n), end: end(2_000n, transfer), isFinal: true };
    expect(decide(WHOLE, late)).toEqual({
      status: "expired",
      final: true,
      asOf: { number: 45, time: 2_000n },
      finalBlock: { number: 45, hash: HASH, time: 2_000n },
    });
    expect(decide(WHOLE, { ...late, isFinal: false })).toMatchObject({ status: "pending", window: "closed" });
  }
});

test("A final status has the block that proves it", () => {
  expect(decide(WHOLE, paid(1_500n))).toMatchObject({ asOf: { number: 45, time: 1_500n } });
  expect(decide(WHOLE, unused(2_900n, 2_000n))).toMatchObject({ asOf: { number: 40, time: 2_000n } });
});

test("A cancellation is never a settlement", () => {
  const seen: Seen = { nonce: "used", asOf: asOf(5_000n), end: end(1_500n, null), isFinal: false };
  for (const question of [WHOLE, NAMED])
    expect(decide(question, seen)).toMatchObject({ status: "canceled", final: false });
});

test.each(["unfinished", "nowhere", "later"] as const)(
  "A used nonce without its transaction is `used`, whether the search is %s",
  (search) => {
    const seen: Seen = { nonce: "used", asOf: asOf(5_000n), end: null, search };
    expect(decide(WHOLE, seen)).toEqual({ status: "used", final: false, asOf: asOf(5_000n), search });
  },
);

describe("GET /settlement parameters", () => {
  const GOOD = { network: "base", from: `0x${"1".repeat(40)}`, nonce: `0x${"2".repeat(64)}` };
  const queryOf = (members: Readonly<Record<string, string | undefined>>) =>
    new URLSearchParams(Object.entries(members).filter((entry): entry is [string, string] => entry[1] !== undefined));

  function refusalOf(query: URLSearchParams): Problem {
    try {
      questionOf(query);
    } catch (error) {
      if (error instanceof Problem) return error;
      throw error;
    }
    throw new Error("The query was accepted.");
  }

  test.each([
    ["no network", { network: undefined }, "network is missing"],
    ["an unknown network", { network: "solana" }, "network is"],
    ["a network named like an Object member", { network: "constructor" }, "network is"],
    ["an invalid payer", { from: "0x12" }, "from is"],
    ["a nonce that is too short", { nonce: "0x01" }, "nonce is"],
    ["a huge nonce", { nonce: `0x${"1".repeat(4_000)}` }, "nonce is"],
    ["a validBefore before 1970", { valid_before: "-1" }, "valid_before is"],
    ["a validBefore beyond uint256", { valid_before: String(2n ** 256n) }, "valid_before is"],
    ["an invalid transaction", { transaction: "latest" }, "transaction is"],
  ])("%s is rejected before any read, with the valid form", (_, wrong, detail) => {
    const refused = refusalOf(queryOf({ ...GOOD, ...wrong }));
    expect(refused.code).toBe("malformed_request");
    expect(refused.details.detail).toContain(detail);
    expect(refused.details.detail.length).toBeLessThan(300);
  });

  test.each(["0", "9007199254740993", "18446744073709551616", String(2n ** 256n - 1n)])(
    "A validBefore of %s is parsed exactly",
    (text) => {
      expect(questionOf(queryOf({ ...GOOD, valid_before: text })).validBefore).toBe(BigInt(text));
    },
  );
});

describe("signatures in statements", async () => {
  // A statement relies on the signature of an account or a contract wallet, in either form that USDC accepts.

  const base = await forFile(startBaseLike());
  const { chain } = base;
  const service = await forFile(startService({ chain, now: base.now, jobs: false, config: { rpcUrls: base.rpcUrls } }));
  const { buy, statementOf } = statementsOf(base, service);

  const STRANGER: Address = "0x00000000000000000000000000000000000a11ce";
  /** An address without code or a known key. */
  const UNDEPLOYED: Address = "0x0000000000000000000000000000000000dec0de";

  test("Contract wallets' signatures and signatures for receiveWithAuthorization are verified, and forged ones are rejected", async () => {
    const owner = await newPayer(chain);
    const wallet = await deployWallet(chain, owner.address);
    const fields = { to: STRANGER, value: 5n, validBefore: base.unixNow() + 600n };
    const ofWallet = authorization({ from: wallet.address, ...fields });
    const ofOwner = authorization({ from: owner.address, ...fields });
    const undeployed = authorization({ from: UNDEPLOYED, ...fields });
    const stranger = await newPayer(chain);
    const by = (signer: LocalAccount, signed: Authorization, sign = signAuthorization) =>
      sign(signer, chain.network, signed).then((signature) =>
        buy({ network: "base", authorization: wire({ authorization: signed, signature }), signature }),
      );
    const [asWallet, asReceived, ...refused] = await Promise.all([
      by(owner, ofWallet),
      by(owner, ofOwner, signReceiveAuthorization),
      by(stranger, ofWallet),
      by(stranger, ofOwner, signReceiveAuthorization),
      by(owner, undeployed),
    ]);
    for (const [bought, primary_type] of [
      [asWallet, "TransferWithAuthorization"],
      [asReceived, "ReceiveWithAuthorization"],
    ] as const) {
      const { answer, check } = await statementOf(bought);
      expect(answer.body).toMatchObject({
        signature: { verified: true, primary_type },
        conditional_on: null,
        settlement: { status: "pending", final: false },
      });
      expect(await check()).toMatchObject({ valid: true });
    }
    for (const { answer, payer } of refused) {
      expectProblem(answer, 422, "unacceptable");
      await nothingCharged(chain, payer);
    }
  });

  const compact = (one: Hex) => serializeCompactSignature(signatureToCompactSignature(parseSignature(one)));
  const wrapped = (one: Hex) => serializeErc6492Signature({ address: STRANGER, data: "0x12", signature: one });

  test("A wrapped and compact signature is verified, and an undeployed wallet is rejected with the reason", async () => {
    const owner = await newPayer(chain);
    const wallet = await deployWallet(chain, owner.address);
    const fields = { to: STRANGER, value: 5n, validBefore: base.unixNow() + 600n };
    const by = async (from: Address, form: (signature: Hex) => Hex) => {
      const signed = authorization({ from, ...fields });
      const signature = await signAuthorization(owner, chain.network, signed);
      const bought = await buy({
        authorization: wire({ authorization: signed, signature }),
        signature: form(signature),
      });
      return { ...bought, signature: form(signature) };
    };
    const bought = await by(owner.address, (one) => wrapped(compact(one)));
    expect(bought.answer.body).toMatchObject({ signature: { verified: true }, conditional_on: null });
    const { check } = await statementOf(bought);
    expect(await check(undefined, bought.signature)).toMatchObject({ valid: true });
    expect((await by(wallet.address, wrapped)).answer.body).toMatchObject({ signature: { verified: true } });
    const { answer, payer } = await by(UNDEPLOYED, wrapped);
    expectProblem(answer, 422, "unacceptable");
    expect(answer.text).toMatch(/is not deployed on base.*Deploy the wallet first.*Or omit the signature/);
    await nothingCharged(chain, payer);
  });
});
