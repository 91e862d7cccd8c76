import type { Handler } from "hono";
import {
  createClient,
  custom,
  type Hex,
  parseSignature,
  serializeCompactSignature,
  serializeErc6492Signature,
  signatureToCompactSignature,
  zeroHash,
} from "viem";
import { generatePrivateKey, privateKeyToAccount } from "viem/accounts";
import { beforeEach, describe, expect, test, vi } from "vitest";
import { escrowAbi } from "../../../contracts/abi.ts";
import type { Forward } from "../../../packages/escrow/src/index.ts";
import { startTestChain } from "../../support/chain/chain.ts";
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

// What buyers' clients and wallets write in more than one way.

const chain = await forFile(startTestChain());
const [escrow, operator] = [await deployEscrow(chain), await deployOperator(chain)];
const { client } = chain;

/** An arbiter that decides by the status alone, at once. */
const arbitrate: Forward = async ({ info, delivery: { status } }) => {
  const functionName = status < 400 ? "release" : "refund";
  const call = { address: info.operator, abi: escrowAbi, functionName, args: [info, zeroHash, "0x"] } as const;
  const hash = await client.writeContract({ ...call, account: privateKeyToAccount(ARBITER_KEY) });
  await client.waitForTransactionReceipt({ hash });
  return functionName;
};

const handler = vi.fn<Handler>(haiku);
const NOBODY = { chain, arbiter: { url: "http://127.0.0.1:9" } };
const shop = await openShop(NOBODY, handler, { escrow: [escrow.address, operator.address], forward: arbitrate });
beforeEach(() => {
  handler.mockReset().mockImplementation(haiku);
});

describe.each<Pays>(["auth-capture", "commerce"])('a payment by "%s"', (pays) => {
  test("is one sale, whatever header it is in, and however its base64 and its signature are written", async () => {
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

  test("that contradicts another is a 400 that says so, and one of version 1 is shown the terms", async () => {
    const buyer = await newBuyer(chain);
    const [first, second] = [await signFor(shop, buyer, { pays }), await signFor(shop, buyer, { pays })];
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

  test("by a smart wallet that is deployed may have a wrapped signature (ERC-6492), whatever factory that names", async () => {
    const owner = privateKeyToAccount(generatePrivateKey());
    const { address } = await deployWallet(chain, owner.address);
    await chain.fund(address, 1_000_000n);
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

  test("by a fresh smart wallet is taken though the first node asked has not seen its code yet", async () => {
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
    const options = { escrow: [escrow.address, operator.address], forward: arbitrate, client: lagging };
    const fresh = await openShop(NOBODY, haiku, options);
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
