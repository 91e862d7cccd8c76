import { x402Client } from "@x402/core/client";
import { decodePaymentRequiredHeader, encodePaymentSignatureHeader } from "@x402/core/http";
import { ExactEvmScheme } from "@x402/evm/exact/client";
import type { PrivateKeyAccount } from "viem/accounts";
import { type Figure, median, medianRatio, percentile } from "../table.ts";
import type { Side, Sides } from "./world.ts";

/** Signs `count` payments with the stock client for the server's terms, and returns their headers. */
export async function sign({ url }: Side, account: PrivateKeyAccount, count: number): Promise<string[]> {
  const { headers } = await fetch(url, { method: "POST" });
  const terms = decodePaymentRequiredHeader(headers.get("payment-required") ?? "");
  const client = new x402Client().register("eip155:*", new ExactEvmScheme(account));
  const signed = Array.from({ length: count }, () => client.createPaymentPayload(terms));
  return (await Promise.all(signed)).map(encodePaymentSignatureHeader);
}

/** Pays once. Returns the milliseconds until the response, or null on failure, which the peer has now and then. */
export async function pay(side: Side, header: string): Promise<number | null> {
  const started = performance.now();
  const response = await fetch(side.url, { method: "POST", headers: { "payment-signature": header } });
  await response.arrayBuffer();
  side.answers.set(response.status, (side.answers.get(response.status) ?? 0) + 1);
  return response.status === 200 ? performance.now() - started : null;
}

export interface Round {
  readonly p50: number;
  readonly p99: number;
  /** Successful payments per second. */
  readonly perSecond: number;
}

/** The load of a round. */
export interface Load {
  readonly payers: readonly PrivateKeyAccount[];
  /** Payments per payer. */
  readonly each: number;
  /** Waits before a payment. By default, a payer makes the next one immediately. */
  readonly until?: (payer: number, payment: number) => Promise<void>;
}

/** Every payer makes its payments in sequence. They are signed beforehand, so that only the servers' time counts. */
export async function measure(side: Side, { payers, each, until }: Load): Promise<Round> {
  const queues = await Promise.all(payers.map((payer) => sign(side, payer, each)));
  const answers: (number | null)[] = [];
  const started = performance.now();
  await Promise.all(
    queues.map(async (queue, payer) => {
      for (const [payment, header] of queue.entries()) {
        await until?.(payer, payment);
        answers.push(await pay(side, header));
      }
    }),
  );
  const times = answers.filter((time) => time !== null);
  const perSecond = (times.length * 1000) / (performance.now() - started);
  return { p50: percentile(times, 0.5), p99: percentile(times, 0.99), perSecond };
}

export type Rounds = Readonly<Record<keyof Sides, readonly Round[]>>;

/** Returns our figure over the peer's in the same round. */
export function figure(name: string, rounds: Rounds, pick: (round: Round) => number): Figure {
  const [ours, peer] = [median(rounds.ours.map(pick)), median(rounds.peer.map(pick))];
  return { name, ours, peer, ratio: medianRatio(rounds.ours, rounds.peer, pick) };
}
