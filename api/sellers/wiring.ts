import { hkdfSync } from "node:crypto";
import type pg from "pg";
import type { Logger } from "pino";
import { privateKeyToAccount } from "viem/accounts";
import { authorizationTypedData } from "../payments/schemes/authorization.ts";
import type { Settler, TransferSimulator } from "../payments/schemes/exact.ts";
import type { ChainReader } from "../platform/chain/chain.ts";
import { elapsedMs, every, sleep } from "../platform/clock.ts";
import type { Config } from "../platform/config/config.ts";
import { createLookupBudget } from "../platform/db/lookup-budget.ts";
import { NETWORKS, type Network } from "../platform/networks.ts";
import type { Address } from "../platform/wallet.ts";
import { guard } from "../platform/web/guard-settings.ts";
import { BudgetSpent } from "../score/lookup/inflows.ts";
import { createExamLedger, createFinalView, createHeadLook } from "./chain.ts";
import { createExamStore } from "./exam-store.ts";
import { createExamWatch, createExamWork } from "./exam-work-store.ts";
import { createFreeExams } from "./free-exam.ts";
import { createGrantStore, createProbeStore } from "./orders-store.ts";
import { watchPayments } from "./payment-fate.ts";
import { EXAM_NETWORK, PROBES_AN_HOUR } from "./products.ts";
import { createExamRunner, type ExamRunner } from "./run-exam.ts";
import { createExamIntake } from "./take-order.ts";
import { createVisitor } from "./visitor.ts";

export interface ExamWires {
  readonly config: Config;
  readonly pool: pg.Pool;
  readonly chains: Readonly<Record<Network, ChainReader>>;
  readonly settler: Pick<Settler, "submit">;
  readonly simulators: Readonly<Record<Network, TransferSimulator>>;
  /** Of the service, besides where it is paid and where exams are paid from. */
  readonly ownWallets: readonly string[];
  readonly now: () => Date;
  readonly log: Logger;
}

/** Exams of sellers: what is sold, and what runs them; the runner is null where no account pays. */
export function wireExams({ config, pool, chains, settler, simulators, ownWallets, now, log }: ExamWires) {
  const { baseUrl, exams, payTo } = config;
  const chain = chains[EXAM_NETWORK];
  const settings = { ...guard(config), baseUrl };
  const visitor = createVisitor({ ...settings, userAgent: `agent-payment-trust-exam/1 (+${baseUrl}/test/seller)` });
  const [store, work] = [createExamStore(pool), createExamWork(pool)];
  const payer = exams === null ? null : privateKeyToAccount(exams.privateKey);
  const account = payer && {
    address: payer.address,
    balance: async () => (await chain.funds(payer.address.toLowerCase() as Address, [])).balance,
  };
  const finalView = createFinalView(chain);
  const daily = exams?.daily ?? 0n;
  const own = [payTo, ...ownWallets, ...(payer === null ? [] : [payer.address])];
  const intake = createExamIntake({
    store,
    work,
    probes: createProbeStore(pool),
    budget: createLookupBudget(pool, { client: PROBES_AN_HOUR.client, all: PROBES_AN_HOUR.all }, "exam "),
    spentFor: (error) =>
      error instanceof BudgetSpent ? { isClient: error.whose === "client", seconds: error.retryAfterSeconds } : null,
    visitor,
    account,
    secret: Buffer.from(hkdfSync("sha256", config.sealingKey, "", "exam ids", 32)),
    ownWallets: own.map((wallet) => wallet.toLowerCase() as Address),
    settings,
    daily,
    now,
  });
  const runner: ExamRunner | null =
    payer === null || account === null
      ? null
      : createExamRunner({
          store,
          work,
          visitor,
          ledger: createExamLedger(chain),
          head: createHeadLook(chain),
          payer,
          account,
          refunds: {
            finalView,
            async send(authorization) {
              const signature = await payer.signTypedData(
                authorizationTypedData(authorization, NETWORKS[EXAM_NETWORK]),
              );
              const { refused } = await simulators[EXAM_NETWORK].simulate(authorization, signature);
              const resource = `${baseUrl}/test/seller`;
              if (refused === null) await settler.submit({ network: EXAM_NETWORK, authorization, signature, resource });
              return refused;
            },
          },
          baseUrl,
          daily,
          now,
          sleep,
          elapsed: elapsedMs,
          every,
          log,
        });
  const takeFree = createFreeExams({ store, grants: createGrantStore(pool), intake, baseUrl, now });
  const watched = createExamWatch(pool);
  const watch = () => watchPayments({ watched, finalView });
  return { exams: { intake, store, takeFree, isForSale: payer !== null }, runner, watch };
}
