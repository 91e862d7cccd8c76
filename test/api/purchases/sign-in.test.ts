import { get } from "node:http";
import { text as textOf } from "node:stream/consumers";
import { createSIWxClientExtension } from "@x402/extensions/sign-in-with-x";
import { wrapFetchWithPayment, x402Client, x402HTTPClient } from "@x402/fetch";
import {
  type Hex,
  parseSignature,
  serializeCompactSignature,
  serializeErc6492Signature,
  signatureToCompactSignature,
} from "viem";
import { generatePrivateKey, privateKeyToAccount } from "viem/accounts";
import { beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { formatUsd } from "../../../api/platform/money.ts";
import { createNonces } from "../../../api/purchases/sign-in.ts";
import { withClient } from "../../../scripts/embedded/postgres.ts";
import { startTestChain } from "../../support/chain/chain.ts";
import { forFile } from "../../support/for-file.ts";
import { settlements } from "../../support/payments/on-chain.ts";
import { PRICES } from "../../support/payments/prices.ts";
import { type Answer, challengeOf, encode, post, send, v2 } from "../../support/payments/requests.ts";
import { newPayer, signPayment } from "../../support/payments/signing.ts";
import {
  attacksOn,
  challengeIn,
  pageIn,
  present,
  purchasesUrl,
  signed,
  signInAt,
} from "../../support/purchases/sign-in.ts";
import { startService } from "../../support/service/service.ts";

const MINUTES = 60_000;
let ahead = 0;
const now = () => new Date(Date.now() + ahead);

const chain = await forFile(startTestChain({ roomMinutes: 30 }));
const service = await forFile(startService({ chain, now }));
const url = purchasesUrl(service.url);
const payer = await newPayer(chain);
const paid = await signPayment(payer);
const bought = await post(`${service.url}/test/basic`, v2(paid, { id: "the-agents-own-identifier" }));
const [settlement] = await settlements(chain, payer.address);

const newAccount = () => privateKeyToAccount(generatePrivateKey());
const usedNonces = () =>
  withClient(service.database.ownerUrl, async (owner) =>
    Number((await owner.query("SELECT count(*) FROM sign_in")).rows[0].count),
  );

/** The code in the 402 of a rejected sign-in. The 402 has a new challenge. */
function refusalOf(answer: Answer): string | undefined {
  expect(answer.status).toBe(402);
  expect(answer.headers.get("cache-control")).toBe("no-store");
  const { error, accepts } = challengeOf(answer);
  expect([accepts, answer.body.accepts]).toEqual([[], []]);
  expect(challengeIn(answer).nonce).toMatch(/^[0-9a-f]{68}$/);
  return error?.split(":")[0];
}

beforeEach(() => {
  ahead = 0;
});

describe("GET /purchases", () => {
  test("A wallet that signs in gets its purchases with their responses and receipts, which no cache keeps", async () => {
    const answer = await signInAt(url, payer);
    expect(answer.headers.get("cache-control")).toBe("private, no-store");
    const receipt = JSON.parse(Buffer.from(bought.headers.get("payment-response") ?? "", "base64").toString());
    expect(answer.body).toEqual({
      wallet: payer.address.toLowerCase(),
      network: "eip155:8453",
      purchases: [
        {
          resource: `${service.url}/test/basic`,
          amount: String(PRICES.basic),
          amount_usd: formatUsd(PRICES.basic),
          pay_to: paid.authorization.to.toLowerCase(),
          transaction: settlement?.transaction,
          block: expect.any(Number),
          final: expect.any(Boolean),
          explorer_url: `https://basescan.org/tx/${settlement?.transaction}`,
          received_at: expect.any(String),
          payment_id: "the-agents-own-identifier",
          receipt: receipt.extensions["offer-receipt"].info.receipt,
          record_url: bought.body.cert_url,
          answer: { status: 200, body: bought.body },
          answer_state: "stored",
          answer_from: null,
        },
      ],
      next: null,
    });
  });

  test("The stock client signs in with its own extension and pays nothing", async () => {
    const client = new x402Client().registerExtension(createSIWxClientExtension({ signers: [payer] }));
    const answer = await wrapFetchWithPayment(fetch, new x402HTTPClient(client))(url);
    expect([answer.status, await answer.json()]).toMatchObject([
      200,
      { purchases: [{ answer: { body: bought.body } }] },
    ]);
    expect(await settlements(chain, payer.address)).toHaveLength(1);
  });

  test("The address may have any letter case, because the signed text has the EIP-55 form", async () => {
    for (const address of [payer.address.toLowerCase(), `0x${payer.address.slice(2).toUpperCase()}`]) {
      const signIn = await signed(payer, challengeIn(await send(url)));
      expect(pageIn(await present(url, { ...signIn, address })).purchases).toHaveLength(1);
    }
  });

  test("The signature and the header may have any form that wallets produce", async () => {
    const form = (one: Hex) => {
      const compact = serializeCompactSignature(signatureToCompactSignature(parseSignature(one)));
      return serializeErc6492Signature({ address: payer.address, data: "0x12", signature: compact });
    };
    const { signature, ...rest } = await signed(payer, challengeIn(await send(url)));
    const header = Buffer.from(`\ufeff${JSON.stringify({ ...rest, signature: form(signature as Hex) })}`);
    expect(pageIn(await present(url, header.toString("base64url"))).purchases).toHaveLength(1);
  });

  test("A page without purchases is empty, for another wallet, network, or transaction", async () => {
    const pages = [
      await signInAt(url, newAccount()),
      await signInAt(purchasesUrl(service.url, { network: "eip155:84532" }), payer),
      await signInAt(purchasesUrl(service.url, { transaction: `0x${"ab".repeat(32)}` }), payer),
    ];
    for (const page of pages) expect(page.body).toMatchObject({ purchases: [], next: null });
    const transaction = settlement?.transaction ?? "";
    expect(pageIn(await signInAt(purchasesUrl(service.url, { transaction }), payer)).purchases).toHaveLength(1);
  });

  test("The challenge is for BASE_URL, whatever host the request names", async () => {
    const { port } = service.config;
    const header = await new Promise<string>((resolve, reject) => {
      const headers = { host: "evil.example", "x-forwarded-host": "evil.example" };
      get({ port, path: "/purchases", headers }, (response) => {
        resolve(String(response.headers["payment-required"]));
        void textOf(response);
      }).on("error", reject);
    });
    const { info } = JSON.parse(Buffer.from(header, "base64").toString()).extensions["sign-in-with-x"];
    expect(info).toMatchObject({ domain: new URL(service.url).host, uri: url, resources: [url] });
    expect(Date.parse(info.expirationTime) - Date.parse(info.issuedAt)).toBe(5 * MINUTES);
    expect(header.length).toBeLessThan(4_096);
  });

  test("A payment for the list is not charged", async () => {
    const another = await signPayment(payer);
    expect(refusalOf(await send(url, { headers: v2(another) }))).toMatch(/^Sign in/);
    expect(await settlements(chain, payer.address)).toHaveLength(1);
  });
});

describe("attacks on sign-in", () => {
  test.each(attacksOn(service.url))(
    "A sign-in with %s is rejected without using up the challenge",
    async (_, attack, code) => {
      const before = await usedNonces();
      const challenge = challengeIn(await send(url));
      const signIn = await attack({ challenge, victim: payer, self: newAccount() });
      const answer = await present(url, signIn);
      expect(refusalOf(answer)).toBe(`invalid_siwx_${code}`);
      expect(answer.text).not.toContain(settlement?.transaction);
      expect(await usedNonces()).toBe(before);
      expect(pageIn(await present(url, await signed(payer, challenge))).purchases).toHaveLength(1);
    },
  );

  test("A used header or nonce is rejected, for any wallet", async () => {
    const challenge = challengeIn(await send(url));
    const signIn = await signed(payer, challenge);
    pageIn(await present(url, signIn));
    expect(refusalOf(await present(url, signIn))).toBe("invalid_siwx_nonce");
    expect(refusalOf(await present(url, await signed(newAccount(), challenge)))).toBe("invalid_siwx_nonce");
    const elsewhere = purchasesUrl(service.url, { network: "eip155:84532" });
    const moved = await signed(payer, { ...challengeIn(await send(url)), chainId: "eip155:84532" });
    expect(refusalOf(await present(elsewhere, moved))).toBe("invalid_siwx_nonce");
  });

  test("A header with two wallets returns the purchases of the one that signed", async () => {
    const self = newAccount();
    const twoNames = [
      (own: string) => `{"address":"${payer.address}",${own.slice(1)}`,
      (own: string) => `${own.slice(0, -1)},"payer":"${payer.address}","wallet":"${payer.address}"}`,
    ];
    for (const both of twoNames) {
      const own = JSON.stringify(await signed(self, challengeIn(await send(url))));
      const page = pageIn(await present(url, Buffer.from(both(own)).toString("base64")));
      expect(page).toMatchObject({ wallet: self.address.toLowerCase(), purchases: [] });
    }
  });

  test("A sign-in five minutes late is expired, and one from the future is rejected", async () => {
    const early = await signed(payer, challengeIn(await send(url)));
    ahead = 5 * MINUTES;
    expect(refusalOf(await present(url, early))).toBe("invalid_siwx_expired");
    const future = await signed(payer, challengeIn(await send(url)));
    ahead = 0;
    expect(refusalOf(await present(url, future))).toBe("invalid_siwx_issued_at_in_future");
  });

  test.each([
    ["that is not base64", "not base64!", /base64-encoded JSON/],
    ["that is not JSON", Buffer.from("{").toString("base64"), /base64-encoded JSON/],
    ["without a payload", encode([]), /not a valid sign-in/],
    ["for another kind of chain", encode({ type: "ed25519" }), /not a valid sign-in/],
    ["of 12 KiB and more", "A".repeat(12_292), /12292 bytes; the limit is 12288/],
  ])("A header %s is a 400 that names the problem", async (_, header, detail) => {
    const answer = await present(url, header);
    expect([answer.status, answer.body.code, answer.body.detail]).toEqual([
      400,
      "malformed_request",
      expect.stringMatching(detail),
    ]);
  });

  test.each([
    ["network=eip155:1", /eip155:8453 or eip155:84532/],
    ["transaction=0x1", /64 hex digits/],
    ["cursor=AAAA", /must come from/],
  ])("%s is a 400 that lists the valid values", async (query, detail) => {
    const { status, body } = await send(`${url}?${query}`);
    expect([status, body.detail]).toEqual([400, expect.stringMatching(detail)]);
  });

  test("Two hundred challenges make the service store nothing", async () => {
    const before = await usedNonces();
    const { nonce } = challengeIn(await send(url));
    const all = new Set([nonce]);
    for (let round = 0; round < 20; round++)
      for (const answer of await Promise.all(Array.from({ length: 10 }, () => send(url))))
        all.add(challengeIn(answer).nonce);
    expect(all.size).toBe(201);
    expect(await usedNonces()).toBe(before);
  });
});

test("A nonce is valid only for the URI and the network that it was issued for, even under a shared secret", () => {
  const secret = Buffer.alloc(32, 7);
  const [here, there] = ["https://one.example/purchases", "https://two.example/purchases"].map((uri) =>
    createNonces([secret], uri, (count) => Buffer.alloc(count, 1)),
  );
  const at = new Date(1_795_000_000_000);
  const nonce = there?.issue("eip155:8453", at) ?? "";
  expect(there?.issuedAt("eip155:8453", nonce)).toEqual(at);
  expect([here?.issuedAt("eip155:8453", nonce), there?.issuedAt("eip155:84532", nonce)]).toEqual([null, null]);
});

test("Exactly one of several concurrent sign-ins with one nonce on two processes succeeds", async () => {
  const { database, config } = service;
  const shared = { sealingKey: config.sealingKey, baseUrl: service.url };
  const other = await startService({ chain, now, database, config: shared });
  onTestFinished(() => other.stop());
  const urls = [config.port, other.config.port].map((port) => `http://localhost:${port}/purchases`);
  for (let round = 0; round < 5; round++) {
    const signIn = await signed(payer, challengeIn(await send(urls[round % 2] as string)));
    const answers = await Promise.all([...urls, ...urls].map((at) => present(at, signIn)));
    expect(answers.map(({ status }) => status).toSorted()).toEqual([200, 402, 402, 402]);
  }
});
