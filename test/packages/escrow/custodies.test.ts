import { decodePaymentRequiredHeader } from "@x402/core/http";
import fc from "fast-check";
import type { Handler } from "hono";
import {
  concat,
  createClient,
  custom,
  encodeAbiParameters,
  getContractAddress,
  type Hex,
  type LocalAccount,
  parseSignature,
  serializeCompactSignature,
  serializeErc6492Signature,
  signatureToCompactSignature,
  zeroHash,
} from "viem";
import { generatePrivateKey, privateKeyToAccount } from "viem/accounts";
import { beforeEach, describe, expect, test, vi } from "vitest";
import { escrowAbi } from "../../../contracts/abi.ts";
import { type Forward, payerAgnosticNonce, paymentId } from "../../../packages/escrow/src/index.ts";
import { startTestChain } from "../../support/chain/chain.ts";
import { artifactOf } from "../../support/chain/contracts.ts";
import { anyTerms } from "../../support/escrow/any-terms.ts";
import { deployEscrow, deployOperator } from "../../support/escrow/contract.ts";
import {
  decodeHeader,
  encodeHeader,
  haiku,
  newBuyer,
  openShop,
  type Pays,
  pay,
  SHOP,
  signFor,
} from "../../support/escrow/sale.ts";
import { forFile } from "../../support/for-file.ts";
import { deployWallet } from "../../support/payments/wallets.ts";
import { ARBITER_KEY } from "../../support/service/environment.ts";

const chain = await forFile(startTestChain());
const [escrow, operator] = [await deployEscrow(chain), await deployOperator(chain)];
const { client } = chain;
const NOBODY = { chain, arbiter: { url: "http://127.0.0.1:9" } };

/** An arbiter that decides immediately, by the status alone. */
const arbitrate: Forward = async ({ info, delivery: { status } }) => {
  const functionName = status < 400 ? "release" : "refund";
  const call = { address: info.operator, abi: escrowAbi, functionName, args: [info, zeroHash, "0x"] } as const;
  const hash = await client.writeContract({ ...call, account: privateKeyToAccount(ARBITER_KEY) });
  await client.waitForTransactionReceipt({ hash });
  return functionName;
};

const handler = vi.fn<Handler>(haiku);
const both = { escrow: [escrow.address, operator.address], forward: arbitrate };
const shop = await openShop(NOBODY, handler, both);
beforeEach(() => {
  handler.mockReset().mockImplementation(haiku);
});

const errorIn = (response: Response): string =>
  decodePaymentRequiredHeader(response.headers.get("payment-required") ?? "").error ?? "";

/** The parts of a payment that a test changes. */
type Changeable = Readonly<Record<"payload" | "accepted", { authorization: object; extra: object }>>;

/** A header for a shop, with its payload and its accepted terms changed. */
async function changed(change: (payment: Changeable) => void): Promise<string> {
  const payment = decodeHeader(await signFor(shop, await newBuyer(chain), { pays: "auth-capture" }));
  change(payment);
  return encodeHeader(payment);
}

test("The id and the nonce of any terms are the same as the contract's", async () => {
  const { address } = escrow;
  const place = { chainId: chain.network.chainId, escrow: address };
  const property = fc.asyncProperty(anyTerms, async (info) => {
    const read = (functionName: "getHash" | "getPayerAgnosticHash") =>
      client.readContract({ address, abi: escrowAbi, functionName, args: [info] });
    expect(paymentId(place, info)).toBe(await read("getHash"));
    expect(payerAgnosticNonce(place, info)).toBe(await read("getPayerAgnosticHash"));
  });
  await fc.assert(property, { numRuns: 50 });
});

describe("the offered contracts", () => {
  test.each([
    ["operator", operator, "auth-capture"],
    ["escrow", escrow, "commerce"],
  ] as const)("A shop that offers only an %s accepts no other scheme", async (_, { address }, scheme) => {
    const only = await openShop(NOBODY, handler, { account: shop.account, escrow: address, forward: arbitrate });
    const other = scheme === "commerce" ? "auth-capture" : "commerce";
    const response = await pay(only, await signFor(shop, await newBuyer(chain), { pays: other }));
    expect(response.status).toBe(402);
    expect(errorIn(response)).toBe(
      `The payment does not match the offer: accepted.scheme is ${other}, expected ${scheme}.`,
    );
  });

  test("An empty list is refused at start, and an address that is neither contract gives no offer", async () => {
    await expect(openShop(NOBODY, handler, { escrow: [] })).rejects.toThrow(/^escrow is an empty list/);
    const wrong = await openShop(NOBODY, handler, { escrow: chain.network.usdc.address });
    expect((await wrong.fetch(SHOP, { method: "POST" })).status).toBe(503);
    expect(wrong.logged).toEqual([expect.stringMatching(/could not be read/)]);
  });
});

describe.each(["auth-capture", "commerce"] as const)("a sale by %s", (pays) => {
  test("Ten simultaneous requests with one header are one hold and one call of the handler", async () => {
    const buyer = await newBuyer(chain);
    const header = await signFor(shop, buyer, { pays });
    const responses = await Promise.all(Array.from({ length: 10 }, () => pay(shop, header)));
    expect(responses.map(({ status }) => status)).toEqual(Array(10).fill(200));
    expect(responses.filter(({ headers }) => headers.get("x-idempotent-replay") === null)).toHaveLength(1);
    expect(handler).toHaveBeenCalledTimes(1);
    expect(await chain.usdcBalance(buyer.address)).toBe(900_000n);
  });

  test("A sale does not start with an authorization that expires before the hold is mined", async () => {
    const header = await signFor(shop, await newBuyer(chain), { pays });
    vi.useFakeTimers({ toFake: ["Date"], now: Date.now() + 115_500 });
    const late = await pay(shop, header).finally(() => vi.useRealTimers());
    expect(late.status).toBe(402);
    expect(errorIn(late)).toMatch(/cannot be held: its preApprovalExpiry is \d+, expected at least \d+\.$/);
    expect(errorIn(late)).toMatch(
      pays === "commerce" ? /^The payment/ : /^invalid_auth_capture_evm_authorization_expired/,
    );
    expect(handler).not.toHaveBeenCalled();
    expect((await pay(shop, header)).status).toBe(200);
  });
});

describe("refusals with the scheme's code", () => {
  test("A payment with a wrong amount gets a 402", async () => {
    const header = await changed(({ payload: { authorization } }) => Object.assign(authorization, { value: "99999" }));
    const response = await pay(shop, header);
    expect(response.status).toBe(402);
    expect(errorIn(response)).toMatch(/^invalid_auth_capture_evm_amount_mismatch: /);
    expect(handler).not.toHaveBeenCalled();
  });

  test("payload_format is a 400", async () => {
    const response = await pay(shop, await changed(({ payload }) => Object.assign(payload, { salt: "pepper" })));
    expect(response.status).toBe(400);
    expect(await response.json()).toEqual({
      error: expect.stringMatching(/^invalid_auth_capture_evm_payload_format: /),
    });
  });
});

describe("a buyer whose wallet is a contract", () => {
  /** CREATE2 with the salt and the creation code from its calldata. It deploys any code. */
  const FACTORY = "0x4e59b44847b379578588920cA78FbF26c0B4956C";
  const FACTORY_CODE =
    "0x7fffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffe03601600081602082378035828234f58015156039578182fd5b8082525050506014600cf3";
  /** Loops until the gas is used up. */
  const BURNER = "0x5b600056";
  const MAGIC = `0x${"6492".repeat(16)}` as const;

  const wrapped = (creation: Hex, signature: Hex): Hex =>
    concat([
      encodeAbiParameters(
        [{ type: "address" }, { type: "bytes" }, { type: "bytes" }],
        [FACTORY, concat([zeroHash, creation]), signature],
      ),
      MAGIC,
    ]);

  /** The header of a wallet that is deployed with this code when it is held. Its owner signs for it. */
  async function undeployed(creation: Hex, owner: LocalAccount = privateKeyToAccount(generatePrivateKey())) {
    await client.setCode({ address: FACTORY, bytecode: FACTORY_CODE });
    const address = getContractAddress({ opcode: "CREATE2", from: FACTORY, salt: zeroHash, bytecode: creation });
    await chain.fund(address, 1_000_000n);
    const wallet = { ...owner, address };
    const payment = decodeHeader(await signFor(shop, wallet, { pays: "auth-capture" }));
    payment.payload.signature = wrapped(creation, payment.payload.signature);
    return { address, header: encodeHeader(payment) };
  }

  /** The header of a deployed wallet, signed by its owner or by another account. */
  async function walletOf(signer?: LocalAccount) {
    const owner = privateKeyToAccount(generatePrivateKey());
    const { bytecode } = artifactOf("SmartWallet");
    const creation = concat([bytecode, encodeAbiParameters([{ type: "address" }], [owner.address])]);
    return undeployed(creation, signer ?? owner);
  }

  test("An undeployed wallet buys only through a factory that the merchant lists", async () => {
    const { address, header } = await walletOf();
    const refused = await pay(shop, header);
    expect(refused.status).toBe(402);
    expect(errorIn(refused)).toMatch(
      /^invalid_auth_capture_evm_erc6492_factory_not_allowed: .* is not deployed.* Deploy the wallet first/,
    );
    const open = await openShop(NOBODY, handler, { ...both, account: shop.account, walletFactories: [FACTORY] });
    const response = await pay(open, header);
    expect([response.status, response.headers.get("x-escrow-decision")]).toEqual([200, "release"]);
    expect(await chain.usdcBalance(address)).toBe(900_000n);
    expect(await client.getCode({ address })).toBeDefined();
    const again = await pay(open, header);
    expect([again.status, again.headers.get("x-idempotent-replay")]).toEqual([200, "true"]);
  });

  test("An undeployed wallet with another account's signature is refused", async () => {
    const { header } = await walletOf(privateKeyToAccount(generatePrivateKey()));
    const open = await openShop(NOBODY, handler, { ...both, account: shop.account, walletFactories: [FACTORY] });
    const response = await pay(open, header);
    expect([response.status, errorIn(response)]).toEqual([402, expect.stringMatching(/_signature: .* did not sign/)]);
  });

  test("For a wallet whose check uses up all gas, deployed or not, the merchant sends no transaction", async () => {
    const before = await client.getTransactionCount({ address: shop.account.address });
    const burner = privateKeyToAccount(generatePrivateKey());
    await client.setCode({ address: burner.address, bytecode: BURNER });
    await chain.fund(burner.address, 1_000_000n);
    const another: LocalAccount = privateKeyToAccount(generatePrivateKey());
    const wallet = { ...another, address: burner.address };
    const refused = await pay(shop, await signFor(shop, wallet, { pays: "auth-capture" }));
    expect([refused.status, errorIn(refused)]).toEqual([402, expect.stringMatching(/_signature: .* did not sign/)]);
    const open = await openShop(NOBODY, handler, { ...both, account: shop.account, walletFactories: [FACTORY] });
    const response = await pay(open, (await undeployed(BURNER)).header);
    expect(response.status).toBe(402);
    expect(errorIn(response)).toMatch(/^invalid_auth_capture_evm_(signature|simulation_failed): /);
    expect(await client.getTransactionCount({ address: shop.account.address })).toBe(before);
    expect([...shop.logged, ...open.logged]).toEqual([]);
  });
});

describe.each<Pays>(["auth-capture", "commerce"])('a payment by "%s"', (pays) => {
  test("It is one sale in either header, however its base64 and its signature are written", async () => {
    const buyer = await newBuyer(chain);
    const header = await signFor(shop, buyer, { pays });
    const spelled = (form: (signature: Hex) => Hex): string => {
      const payment = decodeHeader(header);
      payment.payload.signature = form(payment.payload.signature);
      return encodeHeader(payment);
    };
    const parity = (signature: Hex) => (signature.endsWith("1b") ? 0 : 1);
    const fromZero = spelled((one) => `${one.slice(0, 130)}0${parity(one)}` as Hex);
    const compact = spelled((one) => serializeCompactSignature(signatureToCompactSignature(parseSignature(one))));
    const url = header.replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
    const sendings = [
      { "x-payment": fromZero },
      { "payment-signature": compact },
      { "payment-signature": url, "x-payment": header },
      { "payment-signature": encodeHeader(decodeHeader(header)), "x-payment": fromZero },
    ] as const;
    const statuses: unknown[] = [];
    for (const headers of sendings) {
      const response = await shop.fetch(SHOP, { method: "POST", headers });
      statuses.push([response.status, response.headers.get("x-idempotent-replay")]);
    }
    expect(statuses).toEqual([[200, null], ...[1, 2, 3].map(() => [200, "true"])]);
    expect(await chain.usdcBalance(buyer.address)).toBe(900_000n);
    expect(handler).toHaveBeenCalledTimes(1);
  });

  test("A deployed smart wallet may send its owner's signature, also wrapped (ERC-6492), and no other", async () => {
    const owner = privateKeyToAccount(generatePrivateKey());
    const { address } = await deployWallet(chain, owner.address);
    await chain.fund(address, 1_000_000n);
    const stranger = privateKeyToAccount(generatePrivateKey());
    const forged = await pay(shop, await signFor(shop, { ...stranger, address }, { pays }));
    expect([forged.status, errorIn(forged)]).toEqual([402, expect.stringMatching(/did not sign/)]);
    const payment = decodeHeader(await signFor(shop, { ...owner, address }, { pays }));
    const bare = encodeHeader(payment);
    payment.payload.signature = serializeErc6492Signature({
      address,
      data: "0x12",
      signature: payment.payload.signature,
    });
    const [response, again] = [await pay(shop, encodeHeader(payment)), await pay(shop, bare)];
    expect([response.status, response.headers.get("x-escrow-decision")]).toEqual([200, "release"]);
    expect([again.status, again.headers.get("x-idempotent-replay")]).toEqual([200, "true"]);
    expect(await chain.usdcBalance(address)).toBe(900_000n);
  });

  test("A fresh smart wallet is accepted although the first node has not seen its code yet", async () => {
    const owner = privateKeyToAccount(generatePrivateKey());
    const { address } = await deployWallet(chain, owner.address);
    await chain.fund(address, 1_000_000n);
    let unknown = 2;
    const lagging = createClient({
      transport: custom({
        async request({ method, params }) {
          const isAbout = JSON.stringify(params?.[0] ?? null)
            .toLowerCase()
            .includes(`"${address.toLowerCase()}"`);
          if (isAbout && /^eth_(call|getCode)$/.test(method) && unknown-- > 0) return "0x";
          return client.request({ method, params } as never);
        },
      }),
    });
    const fresh = await openShop(NOBODY, haiku, { ...both, client: lagging });
    const payment = decodeHeader(await signFor(fresh, { ...owner, address }, { pays }));
    payment.payload.signature = serializeErc6492Signature({
      address,
      data: "0x12",
      signature: payment.payload.signature,
    });
    const response = await pay(fresh, encodeHeader(payment));
    expect([response.status, response.headers.get("x-escrow-decision")]).toEqual([200, "release"]);
    expect(unknown).toBeLessThan(0);
  });
});

test("Two contradicting payments get a 400 that names the conflict, and a payment of version 1 gets the terms", async () => {
  const buyer = await newBuyer(chain);
  const [first, second] = [await signFor(shop, buyer), await signFor(shop, buyer)];
  const answer = async (headers: Record<string, string>) => {
    const response = await shop.fetch(SHOP, { method: "POST", headers });
    return [response.status, ((await response.json()) as { error: unknown }).error];
  };
  const twice = await answer({ "payment-signature": first, "x-payment": second });
  expect(twice).toEqual([400, expect.stringContaining("contain different payments")]);
  const old = encodeHeader({ ...decodeHeader(first), accepted: undefined, x402Version: 1 } as never);
  expect(await answer({ "payment-signature": old })).toEqual([400, expect.stringMatching(/x402Version is 1/)]);
  expect(await answer({ "x-payment": old })).toEqual([402, expect.stringMatching(/^X-PAYMENT .*x402Version is 1/)]);
  expect(await chain.usdcBalance(buyer.address)).toBe(1_000_000n);
});
