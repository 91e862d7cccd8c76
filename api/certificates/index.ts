import { randomBytes, randomInt } from "node:crypto";
import { fileURLToPath } from "node:url";
import type { PublicLog } from "../log/index.ts";
import type { Payments } from "../payments/index.ts";
import { createUsdcReader } from "../platform/chain/usdc.ts";
import type { Config } from "../platform/config/config.ts";
import { BudgetSpent, createLookupBudget } from "../platform/db/lookup-budget.ts";
import type { Listed } from "../platform/http/route.ts";
import { type ActivityIndex, createActivityIndex } from "../platform/index/activity.ts";
import type { Atomic } from "../platform/money.ts";
import { MAIN_NETWORK, NETWORKS } from "../platform/networks.ts";
import type { Relayer } from "../platform/relayer/relayer.ts";
import { type Job, type Platform, type Table, under } from "../platform/slice.ts";
import { checkRegistries, createRegistries } from "./agent-registries/chain.ts";
import { createOrderIntake, type TestOrdering, testOrdering } from "./agent-registries/order.ts";
import { createPublishing } from "./agent-registries/publish.ts";
import { createPublicationStore, type PublicationStore } from "./agent-registries/store.ts";
import { createCertification } from "./certify.ts";
import { createDecoyRefunds, createDecoys } from "./decoys/give-back.ts";
import { createDecoyStore } from "./decoys/store.ts";
import { BAITED_KINDS } from "./kinds/index.ts";
import { requireDistinctOrders } from "./kinds/kind.ts";
import { retry as retrySafety } from "./kinds/retry.ts";
import type { SharedAddresses } from "./links.ts";
import { createOgRenderer, OG_FONTS } from "./og-image.ts";
import { createProofs } from "./proofs/publish-proofs.ts";
import { createProofStore } from "./proofs/store.ts";
import { retryRoutes } from "./retry/routes.ts";
import { createRetryTest, type RetryParts } from "./retry/run-retry.ts";
import { createLostOrderStore } from "./retry/store.ts";
import { certificationRoutes, inspectRoute } from "./routes.ts";
import type { PassingCode } from "./sessions/rehearsal.ts";
import { baitedRoutes } from "./sessions/routes.ts";
import { createBaitedTest } from "./sessions/run-session.ts";
import { RECORDED, REHEARSAL, type TestMode } from "./sessions/session.ts";
import { createSessionStore } from "./sessions/store.ts";
import { recordedVerdicts, rehearsedVerdicts } from "./sessions/verdicts.ts";
import {
  type CertificateStore,
  countedCertificates,
  createCertificateStore,
  createVerificationReader,
} from "./store.ts";

export { drawBadge, emblem } from "./appearance.ts";
export { type Certificate, type Result, VALID_FOR_DAYS } from "./certificate.ts";
export { CONTEXT } from "./issue.ts";
export { basic } from "./kinds/basic.ts";
export { BAITED_KINDS } from "./kinds/index.ts";
export { type BaitedKind, totalCost } from "./kinds/kind.ts";
export { LATE_SECONDS, retry, WINDOW_SECONDS } from "./kinds/retry.ts";
export { scam } from "./kinds/scam.ts";
export { suite } from "./kinds/suite.ts";
export {
  badgeUrl,
  certImageUrl,
  certJsonUrl,
  certUrl,
  evidenceUrl,
  type SharedAddresses,
  type SharedRecord,
  verifyUrl,
} from "./links.ts";
export type { Preview } from "./og-image.ts";
export {
  BEHAVIORAL_PRODUCTS,
  type BehavioralProduct,
  CAPABILITY_MENU,
  type Capability,
  PRODUCT_MENU,
  PRODUCTS,
  type Product,
  productOf,
  titleOf,
} from "./products.ts";
export { capability, product, result } from "./schemas.ts";
export type { PassingCode } from "./sessions/rehearsal.ts";
export { PASSING_CODE } from "./sessions/rehearsal.ts";
export { RECORDED, REHEARSAL, type TestMode } from "./sessions/session.ts";
export { aboutWallet, certificateEntries, notReversed } from "./store.ts";
export { VERIFIED_MEANS } from "./verification.ts";

interface CertificateNeeds {
  readonly payments: Pick<Payments, "settler" | "simulators">;
  readonly publicLog: PublicLog;
  readonly shared: SharedAddresses;
  /** The price of one score, for the record's offer. */
  readonly scorePrice: Atomic;
  /** The arbiter's account, which publishes to other registries, or null if it sends nothing. */
  readonly relayer: Relayer | null;
  readonly passingCode: PassingCode;
  /** The delay of a late answer in the retry test, in milliseconds; defaults to the published one. */
  readonly lateMs?: number | undefined;
}

/** Creates the certificates of agents: tests, records, badges, credentials, and their publication elsewhere. */
export async function createCertificates(platform: Platform, config: Config, needs: CertificateNeeds) {
  const {
    pool,
    meter,
    now,
    peers,
    keys: { signer },
  } = platform;
  const { baseUrl } = config;
  const { publicLog, shared } = needs;
  requireDistinctOrders([...BAITED_KINDS, retrySafety]);
  const stored = createCertificateStore(pool);
  const certificates = meter === null ? stored : countedCertificates(stored, meter);
  const publications = createPublicationStore(pool);
  const activity: ActivityIndex = createActivityIndex(pool, {
    viewsSchema: config.indexViewsSchema,
    log: platform.log,
  });
  const certification = createCertification({
    certificates,
    verifications: createVerificationReader(pool, activity),
    publications,
    signer,
    baseUrl,
    scorePrice: needs.scorePrice,
    now,
  });
  const stores = { certificates, publications };
  const { ordering, publish } = await openRegistries(platform, config, { ...stores, relayer: needs.relayer });
  const { recorded, rehearsed, proofs, refunds } = createTests(platform, config, { ...stores, ...needs });
  const testing = { ordering, baseUrl, peers };
  const rehearsal = { ordering: rehearsing(platform), baseUrl, peers };
  const renderOgImage = createOgRenderer(OG_FONTS.map((font) => fileURLToPath(import.meta.resolve(font))));
  const jobs: readonly Job[] = [
    ...(publish === null ? [] : [{ name: "erc8004", everyMs: 2_000, run: publish }]),
    { name: "publish", everyMs: 10_000, run: () => proofs.publishDue() },
    { name: "watch kept", everyMs: 30_000, run: () => proofs.watch() },
    // All processes together make one pass per minute.
    { name: "refund", everyMs: 15_000, run: () => refunds.giveBack() },
  ];
  return {
    certification,
    activity,
    /** Receives the authorizations that callers ask about. */
    heard: [recorded.retry.hear, rehearsed.retry.hear],
    upkeep: { proofs, refunds },
    jobs,
    routes: under("Certification", [
      ...certificationRoutes({ certification, shared, ordering, publicLog, baseUrl, now, renderOgImage }),
    ]),
    tests: under("Certification", [
      ...recorded.baited.flatMap((test) => baitedRoutes({ test, ...testing })),
      ...retryRoutes({ test: recorded.retry, ...testing }),
      ...rehearsed.baited.flatMap((test) => baitedRoutes({ test, ...rehearsal })),
      ...retryRoutes({ test: rehearsed.retry, ...rehearsal }),
    ]),
    inspect: (routes: Table): readonly Listed[] => under("Certification", [inspectRoute(routes, baseUrl)]),
  };
}

interface Stores {
  readonly certificates: CertificateStore;
  readonly publications: PublicationStore;
}

/** Opens publishing to ERC-8004 registries by the arbiter's account, if it is turned on. */
async function openRegistries(
  { chains, log, now, keys: { signer } }: Platform,
  { erc8004, baseUrl }: Config,
  { certificates, publications: store, relayer }: Stores & Pick<CertificateNeeds, "relayer">,
) {
  if (erc8004 === null || relayer === null)
    return { ordering: testOrdering(null, createOrderIntake(null)), publish: null };
  const chain = chains[MAIN_NETWORK];
  await checkRegistries(chain.client, erc8004);
  const registries = createRegistries({ chain, relayer, identity: erc8004.identity });
  const { gasPerDay } = erc8004;
  return {
    ordering: testOrdering(erc8004, createOrderIntake(registries)),
    publish: createPublishing({ store, registries, certificates, signer, baseUrl, gasPerDay, now, log }),
  };
}

/** Rehearsals are free, so the starts per hour are limited, for one client and in total. */
const REHEARSALS_AN_HOUR = { client: 60, all: 600 };

/** The input of a rehearsal, which cannot order a publication. */
function rehearsing({ pool }: Pick<Platform, "pool">): TestOrdering {
  const budget = createLookupBudget(pool, REHEARSALS_AN_HOUR, "rehearsal ");
  return testOrdering(null, async (order, _payer, { client }) => {
    try {
      await budget.spend(client);
      return { input: order };
    } catch (error) {
      if (!(error instanceof BudgetSpent)) throw error;
      const { whose, retryAfterSeconds } = error;
      const limit = `${REHEARSALS_AN_HOUR[whose]} per hour for ${whose === "client" ? "one client" : "all clients together"}`;
      return { unavailable: `Rehearsals are limited to ${limit}. Come back in ${retryAfterSeconds} seconds.` };
    }
  });
}

/** Creates the behavioral tests, the proofs of their withheld signatures, and the refunds of their decoys. */
function createTests(
  { pool, seal, chains, log, now }: Platform,
  config: Config,
  {
    certificates,
    publications,
    payments: { settler, simulators },
    passingCode,
    lateMs,
  }: Stores & Pick<CertificateNeeds, "payments" | "passingCode" | "lateMs">,
) {
  const { baseUrl } = config;
  const { network } = RECORDED;
  const decoys = createDecoys(config.decoySeed);
  const usdc = createUsdcReader(chains[network], NETWORKS[network]);
  const testing = {
    ...{ publications, decoys, baseUrl, now },
    newToken: () => randomBytes(16).toString("base64url"),
    randomBelow: (end: number) => randomInt(end),
  };
  const inMode = (mode: TestMode, parts: Pick<RetryParts, "sessions" | "lostOrders" | "verdicts">) => ({
    baited: BAITED_KINDS.map((kind) => createBaitedTest(kind, { ...testing, ...parts, mode })),
    retry: createRetryTest({ ...testing, ...parts, mode, lateMs }),
  });
  const recorded = inMode(RECORDED, {
    sessions: createSessionStore(pool),
    lostOrders: createLostOrderStore(pool),
    verdicts: recordedVerdicts(certificates),
  });
  const rehearsals = createSessionStore(pool, "rehearsal_session");
  // Its verdicts cannot reach the record because it has no certificates, and nothing else reads its tables.
  const rehearsed = inMode(REHEARSAL, {
    sessions: rehearsals,
    lostOrders: createLostOrderStore(pool, "rehearsal_session"),
    verdicts: rehearsedVerdicts(rehearsals, passingCode),
  });
  const proofs = createProofs({ proofs: createProofStore(pool, seal), certificates, usdc, log });
  const refunds = createDecoyRefunds({
    decoys: createDecoyStore(pool, network),
    signer: decoys,
    usdc,
    settler,
    refusal: async (authorization, signature) =>
      (await simulators[network].simulate(authorization, signature)).refused?.error ?? null,
    network,
    baseUrl,
    now,
    log,
  });
  return { recorded, rehearsed, proofs, refunds };
}
