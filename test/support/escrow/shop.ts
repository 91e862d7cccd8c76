import { type Handler, Hono } from "hono";
import type { LocalAccount } from "viem";
import { generatePrivateKey, privateKeyToAccount } from "viem/accounts";
import { type EscrowedOptions, escrowed, memoryStore } from "../../../packages/escrow/src/index.ts";
import type { TestChain } from "../chain/chain.ts";
import type { ArbiterFront } from "./arbiter-front.ts";

export interface TestMerchant {
  readonly account: LocalAccount;
  readonly app: Hono;
  /** The merchant's server as a client sees it. */
  readonly fetch: typeof fetch;
  /** What the middleware reported. */
  readonly logged: readonly string[];
}

export const SHOP = "http://shop.example/haiku";

/** A merchant with gas that sells `POST /haiku` for 0.10 USD; the handler's calls are the test's to count. */
export async function openShop(
  { chain, arbiter }: { readonly chain: TestChain; readonly arbiter: Pick<ArbiterFront, "url"> },
  handler: Handler | undefined,
  options: Partial<EscrowedOptions> = {},
): Promise<TestMerchant> {
  const account = options.account ?? privateKeyToAccount(generatePrivateKey());
  if ((await chain.client.getBalance(account)) === 0n) await chain.setBalance(account.address, 10n ** 18n);
  const logged: string[] = [];
  const log = (message: string, cause: unknown) => void logged.push(`${message} ${String(cause)}`);
  const common = { account, rpcUrl: chain.rpcUrl, price: "0.10", arbiterUrl: arbiter.url, store: memoryStore(), log };
  const app = new Hono();
  app.post("/haiku", escrowed({ ...common, ...options }, handler));
  return { account, app, logged, fetch: async (input, init) => app.fetch(new Request(input, init)) };
}

export const haiku: Handler = (c) => c.json({ haiku: "An old silent pond" });
