export { SELLER_BADGE } from "./published/document.ts";
export { origin } from "./published/schemas.ts";
export { IN_SITE, REQUEST, STANDS } from "./published/store.ts";
export { SELLER_VERIFIED_MEANS, sellerVerifyUrl } from "./published/verification.ts";
export { siteName } from "./record.ts";
export { PATH_PREFIX } from "./schemas.ts";

import { hkdfSync } from "node:crypto";
import { getAddress } from "viem";
import type { PublicLog } from "../log/index.ts";
import { type Payments, resourceOf } from "../payments/index.ts";
import type { SigningAccount } from "../platform/chain/accounts.ts";
import { authorizationTypedData } from "../platform/chain/authorization.ts";
import { openAccount } from "../platform/chain/remote-signer.ts";
import { elapsedMs, every, sleep } from "../platform/clock.ts";
import type { Config } from "../platform/config/config.ts";
import { createLookupBudget } from "../platform/db/lookup-budget.ts";
import { NETWORKS, type Network } from "../platform/networks.ts";
import { type Job, type Platform, type Slice, under } from "../platform/slice.ts";
import { type Address, parseAddress } from "../platform/wallet.ts";
import { guard } from "../platform/web/target.ts";
import { createExamLedger, createFinalView, createHeadLook } from "./chain.ts";
import { createExamStore } from "./exam-store.ts";
import { createExamWatch, createExamWork } from "./exam-work-store.ts";
import { createFreeExams } from "./free-exam.ts";
import { createGrantStore, createProbeStore } from "./orders-store.ts";
import { watchPayments } from "./payment-end.ts";
import { EXAM_NETWORK, PROBES_AN_HOUR } from "./products.ts";
import { createPublished, sellerAddresses } from "./published/read-published.ts";
import { publishedRoutes } from "./published/routes.ts";
import { createPublishedExamReader } from "./published/store.ts";
import {
  INTERRUPTED,
  type PassingShop,
  REHEARSAL_NETWORK,
  type RehearsalOrder,
  type RehearsalResult,
  resultOf,
} from "./rehearsal/rehearsal.ts";
import { createRehearsalStore, type RehearsalStore } from "./rehearsal/rehearsal-store.ts";
import { rehearsalRoutes } from "./rehearsal/routes.ts";
import { examRoutes } from "./routes.ts";
import { beginHolding, createExamRunner, createRunner, type ExamRunner, type HoldingParts } from "./run-exam.ts";
import { createExamIntake } from "./take-order.ts";
import { createVisitor } from "./visitor-web.ts";

interface RehearsalRunnerParts extends HoldingParts {
  readonly store: Pick<RehearsalStore, "take" | "complete">;
}

/** Runs each rehearsal once. One that breaks off leaves behind only a payment in test money. */
const createRehearsalRunner = (parts: RehearsalRunnerParts): ExamRunner =>
  createRunner(
    () => parts.store.take(),
    async ({ id, order }) => parts.store.complete(id, await outcome(parts, order)),
  );

async function outcome(parts: RehearsalRunnerParts, order: RehearsalOrder): Promise<RehearsalResult> {
  try {
    const holding = await beginHolding(parts, new AbortController().signal);
    const examined = { ...order, amount: BigInt(order.amount), network: REHEARSAL_NETWORK };
    return resultOf(await holding.examine(examined, async () => undefined));
  } catch (error) {
    parts.log.warn({ err: error, url: order.url }, "a rehearsal of the seller's exam did not finish");
    const why = error instanceof Error ? error.message : String(error);
    return INTERRUPTED(`The rehearsal could not be held, and nothing was judged: ${why}`);
  }
}

/** Creates the published records of sellers. */
export function createSellerRecords(
  { pool, now, keys: { signer } }: Platform,
  { baseUrl }: Config,
  { publicLog }: { readonly publicLog: PublicLog },
) {
  const store = createExamStore(pool);
  const reader = createPublishedExamReader(pool);
  const sellers = createPublished({ store, reader, signer, baseUrl, now });
  return {
    sellers,
    routes: under("Certification", publishedRoutes({ sellers, baseUrl })),
    /** The records of sellers at the URLs that they share with agents' certificates. */
    shared: sellerAddresses({ sellers, publicLog, baseUrl, now }),
    async payeeUrl(text: string): Promise<string | null> {
      const wallet = parseAddress(text);
      const exams = wallet === null ? [] : (await sellers.payee(wallet)).exams;
      return exams.length === 0 ? null : `${baseUrl}/payee/${wallet}`;
    },
  };
}

interface ExamNeeds {
  readonly payments: Pick<Payments, "settler" | "simulators">;
  /** The service's wallets other than its payee and the payer of exams. */
  readonly ownWallets: readonly string[];
  readonly passingShop: PassingShop;
}

/** Sellers see the address with its checksum. */
const examPayer = ({ address, signTypedData }: SigningAccount) => ({ address: getAddress(address), signTypedData });

/** Creates exams of sellers: their sale, and their runs if an account pays for them. */
export function createExams(
  platform: Platform,
  config: Config,
  { payments: { settler, simulators }, ownWallets, passingShop }: ExamNeeds,
): Slice {
  const { pool, chains, now, log, peers } = platform;
  const { baseUrl, exams, payTo } = config;
  const chain = chains[EXAM_NETWORK];
  const settings = { ...guard(config), baseUrl };
  const visitor = createVisitor({ ...settings, userAgent: `agent-payment-trust-exam/1 (+${baseUrl}/test/seller)` });
  const [store, work] = [createExamStore(pool), createExamWork(pool)];
  const payer = exams === null ? null : examPayer(openAccount(exams.key));
  const accountOn = (network: Network) =>
    payer && {
      address: payer.address,
      balance: async () => (await chains[network].funds(payer.address.toLowerCase() as Address, [])).balance,
    };
  const account = accountOn(EXAM_NETWORK);
  const finalView = createFinalView(chain);
  const daily = exams?.daily ?? 0n;
  const own = [payTo, ...ownWallets, ...(payer === null ? [] : [payer.address])];
  const looking = {
    probes: createProbeStore(pool),
    budget: createLookupBudget(pool, PROBES_AN_HOUR, "exam "),
    visitor,
    ownWallets: own.map((wallet) => wallet.toLowerCase() as Address),
    settings,
    now,
  };
  const secret = Buffer.from(hkdfSync("sha256", config.sealingKey, "", "exam ids", 32));
  const intake = createExamIntake({ ...looking, network: EXAM_NETWORK, store, work, account, secret, daily });
  const waiting = { now, sleep, elapsed: elapsedMs, every, log };
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
              const description = "Returns the price of an exam that the service broke.";
              const resource = resourceOf(baseUrl, { path: "/test/seller", description });
              if (refused === null) await settler.submit({ network: EXAM_NETWORK, authorization, signature, resource });
              return refused?.error ?? null;
            },
          },
          ...waiting,
          baseUrl,
          daily,
        });
  const rehearsals = createRehearsalStore(pool);
  const rehearsal =
    payer === null
      ? null
      : createRehearsalRunner({
          ...waiting,
          store: rehearsals,
          visitor,
          ledger: createExamLedger(chains[REHEARSAL_NETWORK], REHEARSAL_NETWORK),
          head: createHeadLook(chains[REHEARSAL_NETWORK]),
          payer,
        });
  const takeFree = createFreeExams({ store, grants: createGrantStore(pool), intake, baseUrl, now });
  const watched = createExamWatch(pool);
  const watch = () => watchPayments({ watched, finalView });
  const routes = [
    ...examRoutes({ exams: { intake, store, takeFree, isForSale: payer !== null }, baseUrl, peers }),
    ...rehearsalRoutes({
      ...{ ...looking, network: REHEARSAL_NETWORK, account: accountOn(REHEARSAL_NETWORK) },
      ...{ store: rehearsals, secret, baseUrl, passingShop },
    }),
  ];
  const jobs: readonly Job[] = [
    ...(runner === null
      ? []
      : [{ name: "exams", everyMs: 1_000, run: () => runner.runDue(), idle: () => runner.idle() }]),
    ...(rehearsal === null
      ? []
      : [{ name: "seller rehearsals", everyMs: 1_000, run: () => rehearsal.runDue(), idle: () => rehearsal.idle() }]),
    { name: "exam payments", everyMs: 5_000, run: watch },
  ];
  return { routes: under("Certification", routes), jobs };
}
