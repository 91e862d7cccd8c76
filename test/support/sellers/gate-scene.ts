import { ExactEvmScheme } from "@x402/evm/exact/client";
import { getAddress, type Hex } from "viem";
import type { HDAccount } from "viem/accounts";
import { expect } from "vitest";
import type { Config } from "../../../api/platform/config/config.ts";
import { devAccount } from "../../../scripts/embedded/dev-accounts.ts";
import { freePort } from "../../../scripts/embedded/ports.ts";
import { startTestChain, type TestChain } from "../chain/chain.ts";
import { forFile } from "../for-file.ts";
import { acceptedOf, encode, v1, v2 } from "../payments/requests.ts";
import { signPayment } from "../payments/signing.ts";
import { startService, type TestService } from "../service/service.ts";
import { STOCK_CLIENTS, type StockClient } from "../sessions/agents.ts";
import { serveFacilitator } from "./stock-facilitator.ts";

/** The shop's wallet, without a balance at the start. */
export const SHOP = "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed";
export const HAIKU = { haiku: "An old silent pond" };

export const VERIFIED = devAccount(1);
export const UNTESTED = devAccount(2);
/** A wallet with a current PASS and a current FAIL. */
export const FAILED = devAccount(3);

export interface GateScene {
  readonly chain: TestChain;
  readonly service: TestService;
  readonly facilitatorUrl: string;
  /** The URL of an unreachable service. */
  readonly closedUrl: string;
}

interface GatePlan {
  /** Default: a new one. */
  readonly chain?: TestChain;
  readonly config?: Partial<Config>;
}

/** The service and a stock facilitator on a chain, with three wallets that can pay. */
export async function startGateScene({ config = {}, ...plan }: GatePlan = {}): Promise<GateScene> {
  const chain = plan.chain ?? (await forFile(startTestChain()));
  const service = await forFile(startService({ chain, config }));
  const facilitator = await forFile(serveFacilitator(chain));
  for (const account of [VERIFIED, FAILED]) await STOCK_CLIENTS[0]?.post(`${service.url}/test/basic`, account);
  // The client has no price limit, so it signs the bait.
  const client = STOCK_CLIENTS.find(({ name }) => name === "@x402/axios") as StockClient;
  const start = await client.post(`${service.url}/test/scam/start`, FAILED);
  const { url } = start.body.next as { url: string };
  for (const _ of [1, 2]) await client.post(url, FAILED).catch(() => null);
  for (const { address } of [VERIFIED, UNTESTED, FAILED])
    expect(await chain.usdcBalance(address)).toBeGreaterThan(1_000_000n);
  return { chain, service, facilitatorUrl: facilitator.url, closedUrl: `http://127.0.0.1:${await freePort()}` };
}

type Sent = Record<string, string>;
export type Send = (headers: Sent) => Promise<Response>;

const TERMS = { amount: "10000", payTo: SHOP, maxTimeoutSeconds: 300 };
const sign = (payer: HDAccount) => signPayment(payer, { to: SHOP.toLowerCase() as Hex, value: 10_000n });

/** A payment of 0.01 USDC to the shop. */
export async function payment(payer: HDAccount): Promise<Sent> {
  const signed = await sign(payer);
  return v2(signed, { accepted: { ...TERMS, asset: getAddress(acceptedOf(signed).asset) } });
}

const jsonOf = (headers: Sent): string => Buffer.from(headers["PAYMENT-SIGNATURE"] ?? "", "base64").toString();
const header = (json: string): Sent => ({ "PAYMENT-SIGNATURE": Buffer.from(json).toString("base64") });

type Payload = Readonly<Record<string, unknown>>;

/** The payment with another payload. */
async function altered(payer: HDAccount, change: (payload: Payload) => Payload | Promise<Payload>): Promise<Sent> {
  const { payload, ...rest } = JSON.parse(jsonOf(await payment(payer)));
  return header(JSON.stringify({ ...rest, payload: await change(payload) }));
}

/** The stock client's payload for Permit2. */
async function permit2(payer: HDAccount): Promise<Payload> {
  const { accepted } = JSON.parse(jsonOf(await payment(payer)));
  const asked = { ...accepted, extra: { ...accepted.extra, assetTransferMethod: "permit2" } };
  const { payload } = await new ExactEvmScheme(payer).createPaymentPayload(2, asked);
  expect(payload).toMatchObject({ permit2Authorization: { from: payer.address } });
  return payload;
}

const decoy = { from: VERIFIED.address };

/**
 * A buyer's headers, with the status for a verified wallet, a FAIL, and an untested one, and for all of them without
 * the service.
 */
const FORMS: readonly (readonly [
  form: string,
  make: (payer: HDAccount) => Sent | Promise<Sent>,
  statuses: readonly [verified: number, fail: number, untested: number, down: number],
])[] = [
  ["no header", () => ({}), [402, 402, 402, 402]],
  ["version 2", payment, [200, 403, 403, 503]],
  // Stock servers of version 2 do not read this header.
  ["version 1", async (payer) => v1(await sign(payer)), [402, 402, 402, 402]],
  [
    "version 1 in the header of version 2",
    async (payer) => header(jsonOf(await payment(payer)).replace('"x402Version":2', '"x402Version":1')),
    [402, 403, 403, 503],
  ],
  ["a byte-order mark", async (payer) => header(`\ufeff${jsonOf(await payment(payer))}`), [200, 403, 403, 503]],
  ["garbage", () => ({ "PAYMENT-SIGNATURE": "garbage!" }), [402, 402, 402, 402]],
  ["base64 of broken JSON", async (payer) => header(jsonOf(await payment(payer)).slice(1)), [402, 402, 402, 402]],
  ["JSON that is not a payment", () => ({ "PAYMENT-SIGNATURE": encode([1]) }), [402, 402, 402, 402]],
  ["no payload", (payer) => altered(payer, () => null as never), [403, 403, 403, 403]],
  ["Permit2", (payer) => altered(payer, () => permit2(payer)), [200, 403, 403, 503]],
  [
    "a verified decoy next to Permit2",
    (payer) => altered(payer, async () => ({ authorization: decoy, ...(await permit2(payer)) })),
    [403, 403, 403, 403],
  ],
  [
    "Permit2 as a verified decoy",
    (payer) => altered(payer, (payload) => ({ ...payload, permit2Authorization: decoy })),
    [403, 403, 403, 403],
  ],
  [
    "a verified decoy in another case",
    (payer) => altered(payer, (payload) => ({ ...payload, Authorization: decoy })),
    [403, 403, 403, 403],
  ],
  [
    "two wallets in one authorization",
    (payer) =>
      altered(payer, ({ authorization, ...rest }) => ({
        ...rest,
        authorization: { From: VERIFIED.address, ...(authorization as object) },
      })),
    [403, 403, 403, 403],
  ],
  [
    "a verified wallet that signed nothing",
    (payer) =>
      altered(payer, ({ authorization, ...rest }) => ({
        ...rest,
        authorization: { ...(authorization as object), from: VERIFIED.address },
      })),
    [200, 402, 402, 503],
  ],
  [
    "a list instead of an address",
    (payer) =>
      altered(payer, ({ authorization, ...rest }) => ({
        ...rest,
        authorization: { ...(authorization as object), from: [payer.address] },
      })),
    [403, 403, 403, 403],
  ],
];

/**
 * Permit2's contracts are not on the tests' chains, where the stock facilitator mistakes its call of their empty
 * address for a settlement.
 */
const priceOf = (form: string): bigint => (form === "Permit2" ? 0n : 10_000n);

/** Sends each form from each wallet to a gated shop, and to the same shop with an unreachable service. */
export async function expectGate({ chain, service }: GateScene, open: Send, down: Send): Promise<void> {
  for (const [form, make, [verified, fail, untested, without]] of FORMS) {
    const cases = [
      ["verified", open, VERIFIED, verified],
      ["FAIL", open, FAILED, fail],
      ["untested", open, UNTESTED, untested],
      ["service down", down, VERIFIED, without],
    ] as const;
    for (const [wallet, send, payer, status] of cases) {
      const held = await chain.usdcBalance(SHOP);
      const answer = await send(await make(payer));
      expect([form, wallet, answer.status]).toEqual([form, wallet, status]);
      expect([form, wallet, (await chain.usdcBalance(SHOP)) - held]).toEqual([
        form,
        wallet,
        status === 200 ? priceOf(form) : 0n,
      ]);
      const body = (await answer.json()) as { readonly error?: string };
      if (status === 200) expect(body).toEqual(HAIKU);
      if (status === 403 || status === 503) expect(body.error).toMatch(/Nothing was charged\.$/);
      if (status === 503) expect(answer.headers.get("retry-after")).toBe("5");
    }
  }
  for (const [{ address }, code] of [
    [FAILED, "current_fail"],
    [UNTESTED, "never_tested"],
  ] as const) {
    const found = await fetch(`${service.url}/verify?wallet=${address}`);
    const record = (await found.json()) as { readonly reasons: unknown };
    const refusal = await open(await payment(address === FAILED.address ? FAILED : UNTESTED));
    expect([refusal.status, refusal.headers.get("cache-control")]).toEqual([403, "no-store"]);
    expect(await refusal.json()).toEqual({
      error: `Wallet ${address} is not verified. Nothing was charged.`,
      wallet: address,
      missing: ["verified"],
      reasons: record.reasons,
      how_to_test: `${service.url}/inspect`,
    });
    expect(record.reasons).toMatchObject([{ code }]);
  }
}
