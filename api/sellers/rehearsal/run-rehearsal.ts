import PQueue from "p-queue";
import { examine } from "../../../packages/seller-check/src/exam/examine.ts";
import type { Ledger } from "../../../packages/seller-check/src/exam/ledger.ts";
import type { Payer } from "../../../packages/seller-check/src/exam/payment.ts";
import { NETWORKS } from "../../platform/networks.ts";
import { isUnder } from "../consent.ts";
import { guardedPayer } from "../exam-account.ts";
import { examClock, type NetworkHealthParts, watchNetworkHealth } from "../network-health.ts";
import { MOST_OPEN } from "../products.ts";
import type { ExamRunner } from "../run-exam.ts";
import { RUN_MS, SELLER_MS } from "../run-exam.ts";
import type { Visitor } from "../visitor-web.ts";
import { INTERRUPTED, REHEARSAL_NETWORK, type RehearsalOrder, type RehearsalResult, resultOf } from "./rehearsal.ts";
import type { RehearsalStore } from "./rehearsal-store.ts";

export interface RehearsalRunnerParts extends Pick<NetworkHealthParts, "sleep" | "every" | "elapsed"> {
  readonly store: Pick<RehearsalStore, "take" | "complete">;
  readonly visitor: Visitor;
  readonly ledger: Ledger;
  readonly head: NetworkHealthParts["block"];
  readonly payer: Payer;
  readonly now: () => Date;
  readonly log: { warn(facts: object, message: string): void };
}

/** Runs each rehearsal once. One that breaks off leaves behind only a payment in test money. */
export function createRehearsalRunner(parts: RehearsalRunnerParts): ExamRunner {
  const running = new PQueue();
  return {
    async runDue() {
      let begun = 0;
      while (running.pending < MOST_OPEN) {
        const taken = await parts.store.take();
        if (taken === null) break;
        void running.add(async () => parts.store.complete(taken.id, await outcome(parts, taken.order)));
        begun += 1;
      }
      return begun;
    },
    idle: () => running.onIdle(),
  };
}

async function outcome(parts: RehearsalRunnerParts, order: RehearsalOrder): Promise<RehearsalResult> {
  try {
    return await hold(parts, order);
  } catch (error) {
    parts.log.warn({ err: error, url: order.url }, "a rehearsal of the seller's exam did not finish");
    const why = error instanceof Error ? error.message : String(error);
    return INTERRUPTED(`The rehearsal could not be held, and nothing was judged: ${why}`);
  }
}

async function hold(parts: RehearsalRunnerParts, order: RehearsalOrder): Promise<RehearsalResult> {
  const { visitor, ledger, head, payer, sleep, now } = parts;
  const { url, method, body, contentType, payTo } = order;
  const amount = BigInt(order.amount);
  const clock = await examClock(ledger, now);
  const health = watchNetworkHealth({ ...parts, block: head, resolves: visitor.resolves });
  const payable = {
    network: REHEARSAL_NETWORK,
    asset: NETWORKS[REHEARSAL_NETWORK].usdc.address,
    ceiling: amount,
    payTo,
  };
  const report = await examine(
    {
      resource: { url, method, body, contentType },
      payable,
      other: order.other === null ? null : { url: order.other, method, body },
      isAllowed: (route) => isUnder(order.prefix, route),
    },
    {
      transport: health.over(visitor.visit(SELLER_MS, new AbortController().signal)),
      ledger,
      payer: guardedPayer(payer, { payTo, amount }, async () => undefined),
      sleep,
      now: clock,
      endsAt: clock() + RUN_MS,
    },
  );
  await health.requireWorked();
  return resultOf(report);
}
