import { setTimeout as sleep } from "node:timers/promises";
import { x402Client } from "@x402/core/client";
import { decodePaymentRequiredHeader, encodePaymentSignatureHeader } from "@x402/core/http";
import { AuthCaptureEvmScheme } from "@x402/evm/auth-capture/client";
import { ExactEvmScheme } from "@x402/evm/exact/client";
import { generatePrivateKey, type PrivateKeyAccount, privateKeyToAccount } from "viem/accounts";
import { EscrowScheme } from "../../packages/escrow/src/index.ts";
import { type AnvilClient, anvilClient } from "../../scripts/embedded/anvil.ts";
import { fundAccounts } from "../../scripts/embedded/usdc.ts";
import { processorMs, type Service, withService } from "../programs.ts";
import { type Figure, median, medianRatio } from "../table.ts";
import { BASE } from "./world.ts";

/** With few buyers, each waits for its own steps. With many, each step serves several. */
const LOADS = [
  { buyers: 16, each: 8 },
  { buyers: 64, each: 3 },
] as const;
const ROUNDS = 3;
/** A pause, so that a round does not pay for the remaining work (finality, the index) of the last one. */
const PAUSE_MS = 1_500;
/** The routes, each with a client that pays by only one scheme. */
const SALES = {
  exact: { path: "/test/basic", client: (buyer: PrivateKeyAccount) => new ExactEvmScheme(buyer) },
  commerce: { path: "/escrow/demo", client: (buyer: PrivateKeyAccount) => new EscrowScheme(buyer) },
  "auth-capture": { path: "/escrow/demo", client: (buyer: PrivateKeyAccount) => new AuthCaptureEvmScheme(buyer) },
} as const;
type Sale = keyof typeof SALES;
const ALL = Object.keys(SALES) as readonly Sale[];

interface Round {
  readonly perMinute: number;
  /** Processor time per sale, without the buyers. */
  readonly ms: number;
  readonly transactions: number;
  readonly gas: number;
}

interface Shop extends Service {
  readonly chain: AnvilClient;
  readonly buyers: readonly PrivateKeyAccount[];
}

/**
 * Compares escrowed sales end to end (hold, evaluation, and release, all mined) by both schemes with as many `exact` sales, on
 * one service and one chain, with the same buyers, in turns.
 */
export const escrow = () =>
  withService(async (service) => {
    const most = Math.max(...LOADS.map(({ buyers }) => buyers));
    const buyers = Array.from({ length: most }, () => privateKeyToAccount(generatePrivateKey()));
    const chain = anvilClient(service.rpcUrl, BASE);
    await fundAccounts(chain, BASE, { accounts: buyers.map(({ address }) => address), usdc: 10n ** 9n, wei: 0n });
    const shop: Shop = { ...service, chain, buyers };
    for (const sale of ALL) await measure(sale, { ...shop, buyers: buyers.slice(0, 8) }, 1);
    const figures: Figure[] = [];
    for (const load of LOADS)
      figures.push(...(await compare({ ...shop, buyers: buyers.slice(0, load.buyers) }, load.each)));
    return figures;
  });

async function compare(shop: Shop, each: number): Promise<readonly Figure[]> {
  const rounds: Record<Sale, Round[]> = { exact: [], commerce: [], "auth-capture": [] };
  for (let round = 0; round < ROUNDS; round++)
    for (const sale of ALL) rounds[sale].push(await measure(sale, shop, each));
  return (["commerce", "auth-capture"] as const).flatMap((sale) => {
    const figure = (what: string, pick: (round: Round) => number): Figure => ({
      ...{ name: `${shop.buyers.length}: \`${sale}\`, ${what}`, ours: median(rounds[sale].map(pick)) },
      ...{ peer: median(rounds.exact.map(pick)), ratio: medianRatio(rounds[sale], rounds.exact, pick) },
    });
    return [
      figure("sales/minute", (one) => one.perMinute),
      figure("processor ms per sale", (one) => one.ms),
      figure("transactions per sale", (one) => one.transactions),
      figure("gas per sale", (one) => one.gas),
    ];
  });
}

async function measure(sale: Sale, { baseUrl, chain, buyers, pid }: Shop, each: number): Promise<Round> {
  const url = `${baseUrl}${SALES[sale].path}`;
  const queues = await Promise.all(
    buyers.map((buyer) => Promise.all(Array.from({ length: each }, () => sign(sale, url, buyer)))),
  );
  await sleep(PAUSE_MS);
  const before = { block: await chain.getBlockNumber(), ms: processorMs(pid), at: performance.now() };
  await Promise.all(
    queues.map(async (queue) => {
      for (const header of queue) await pay(url, header);
    }),
  );
  const sales = buyers.length * each;
  const perMinute = (sales * 60_000) / (performance.now() - before.at);
  const ms = (processorMs(pid) - before.ms) / sales;
  let [transactions, gas] = [0, 0];
  for (let blockNumber = await chain.getBlockNumber(); blockNumber > before.block; blockNumber--) {
    const block = await chain.getBlock({ blockNumber });
    transactions += block.transactions.length / sales;
    gas += Number(block.gasUsed) / sales;
  }
  return { perMinute, ms, transactions, gas };
}

async function sign(sale: Sale, url: string, account: PrivateKeyAccount): Promise<string> {
  const { headers } = await fetch(url, { method: "POST" });
  const terms = decodePaymentRequiredHeader(headers.get("payment-required") ?? "");
  const client = new x402Client().register("eip155:*", SALES[sale].client(account));
  return encodePaymentSignatureHeader(await client.createPaymentPayload(terms));
}

async function pay(url: string, header: string): Promise<void> {
  const response = await fetch(url, { method: "POST", headers: { "payment-signature": header } });
  const text = await response.text();
  if (response.status !== 200) throw new Error(`${url} answered ${response.status}: ${text.slice(0, 300)}`);
}
