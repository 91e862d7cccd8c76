import { randomUUID } from "node:crypto";
import type { Context } from "hono";
import { openAccount } from "../platform/chain/remote-signer.ts";
import { elapsedMs } from "../platform/clock.ts";
import type { Config } from "../platform/config/config.ts";
import { isPaid, isQuoted, type Listed, type PaidRoute, type Route, sold } from "../platform/http/route.ts";
import { eachNetwork, MAIN_NETWORK, NETWORKS, type Network } from "../platform/networks.ts";
import { SHARES } from "../platform/relayer/places.ts";
import { createRelayer, type Relayer } from "../platform/relayer/relayer.ts";
import type { Cargo } from "../platform/relayer/sender.ts";
import { type Job, type Platform, type Table, under } from "../platform/slice.ts";
import type { Address } from "../platform/wallet.ts";
import { PATIENCE_MS } from "./commands.ts";
import { createGate } from "./gate.ts";
import { countedJournal } from "./journal/counted-journal.ts";
import { createJournal } from "./journal/journal-store.ts";
import { createReceipts } from "./journal/upkeep-store.ts";
import { areHeld, haveProved } from "./journal/write-store.ts";
import type { Journal } from "./journal.ts";
import { payable, quoted } from "./payable.ts";
import { createOfferReceipt } from "./receipt.ts";
import { receiptRoutes } from "./routes.ts";
import type { Scheme } from "./scheme.ts";
import { createAuthCapture } from "./schemes/auth-capture.ts";
import { createCommerce } from "./schemes/commerce.ts";
import type { EscrowContract, SignedHold } from "./schemes/escrowed.ts";
import { createExact } from "./schemes/exact.ts";
import { type Batching, createBatching } from "./settle/batching-chain.ts";
import { createInProcessSettler, createRemoteSettler } from "./settle/facilitator-chain.ts";
import { createHolds, holdsOf } from "./settle/holds.ts";
import { failedPlaces } from "./settle/settlement-batch.ts";
import { createTransferSimulator, type SimulatorParts, transfersTo } from "./settle/transfer.ts";
import { createUsdcWatch } from "./usdc-chain.ts";

export { MAX_HEADER_BYTES, toBase64Json } from "./header.ts";
export {
  ACTIVE as ACTIVE_PAYMENTS,
  KEY,
  keyValues,
  PARKED as PARKED_PAYMENTS,
  sealContext,
} from "./journal/row-store.ts";
export type { Journal } from "./journal.ts";
export type { OfferReceipt } from "./receipt.ts";
export { PAYMENT_REQUIRED } from "./schemas.ts";
export { resourceOf, type Scheme } from "./scheme.ts";
export {
  current,
  currentOf,
  type EscrowContract,
  type EscrowSchemeId,
  paymentInfoOf,
  schemesIn,
} from "./schemes/escrowed.ts";
export { requirements, type Settler } from "./schemes/exact.ts";
export { requireCommercePayments } from "./settle/holds.ts";
export { MOST_GAS } from "./settle/simulation.ts";
export { isAccountSignature, undeployed } from "./signature.ts";
export type { UsdcState } from "./usdc-chain.ts";

export type Payments = ReturnType<typeof createPayments>;

/** Creates the payment slice: the settlers, the journal, and the gate. */
export function createPayments(platform: Platform, config: Config) {
  const { pool, seal, log, meter, now, chains } = platform;
  const { relayers, settler, simulators } = createSettling(platform, config);
  const stored = createJournal(pool, seal);
  const journal = meter === null ? stored : countedJournal(stored, meter);
  const offerReceipt = createOfferReceipt(platform.keys.signCompact);
  const { baseUrl, payTo } = config;
  const usdc = createUsdcWatch(platform, payTo);

  return {
    journal,
    usdc,
    relayers,
    settler,
    simulators,
    offerReceipt,

    routes: (routes: Table): readonly Listed[] =>
      under("Discovery", receiptRoutes({ receipts: createReceipts(pool), routes, baseUrl })),

    /** The accepted schemes, by name. Without an account that sends holds, no escrow is offered. */
    schemes: (escrow: EscrowAccount): ReadonlyMap<string, Scheme> => {
      const holds = createHolds({
        client: chains[MAIN_NETWORK].client,
        relayer: escrow.relayer,
        ceiling: config.costCeiling,
        batchingOf: holdBatchings(platform, config, escrow),
      });
      const escrowed = { contracts: escrow.contracts, chains, holds };
      const schemes = [
        createExact({ chains, simulators, settler }),
        createAuthCapture({
          ...escrowed,
          factories: config.walletFactories,
          isSignedByWrapped: ({ network, ...signed }, asker) => chains[network].verifyWrappedSignature(signed, asker),
        }),
        createCommerce(escrowed),
      ];
      return new Map(schemes.map((scheme) => [scheme.id, scheme]));
    },

    /**
     * Sells the routes in the table: returns the gate, the handler of each paid route, and the jobs that finish
     * payments.
     */
    sell(
      routes: readonly Listed[],
      {
        schemes,
        patienceMs,
        isUnread,
      }: Pick<EscrowAccount, "isUnread"> & {
        readonly schemes: ReadonlyMap<string, Scheme>;
        readonly patienceMs?: number | undefined;
      },
    ) {
      const gate = createGate({
        journal,
        chains,
        schemes,
        usdc,
        baseUrl,
        now,
        log,
        routes: new Map(sold(routes).map((route) => [route.id, isUnread ? untilRead(route) : route])),
        newToken: randomUUID,
        patienceMs: patienceMs ?? PATIENCE_MS,
      });
      const parts = { gate, schemes, usdc, payTo, baseUrl, offerReceipt, now, log, peers: platform.peers };
      const jobs: readonly Job[] = [
        { name: "resolve", everyMs: 1_000, run: () => gate.resolveDue() },
        { name: "watch", everyMs: 30_000, run: watchPayments(journal, log) },
        ...usdc.jobs,
      ];
      const handlerOf = (route: Route): ((c: Context) => Response | Promise<Response>) => {
        if (isPaid(route)) return payable(route, parts);
        return isQuoted(route) ? quoted(route, parts) : route.handle;
      };
      return { gate, jobs, handlerOf };
    },
  };
}

/**
 * Delays sales on the contracts' network until the contracts have been read, because scores and verdicts depend on
 * them.
 */
const untilRead = (route: PaidRoute): PaidRoute =>
  !route.terms.networks.includes(MAIN_NETWORK)
    ? route
    : {
        ...route,
        sell: async () => {
          throw new Error("the escrow contracts could not be read yet");
        },
      };

/** The relayer's view of facilitator transactions. */
export const PAYMENTS: Cargo = { areHeld, haveProved, failedPlaces, servedBy: () => null };

/** The contracts that hold payments, and the account that sends holds; null if there is no contract. */
export interface EscrowAccount {
  readonly contracts: readonly EscrowContract[];
  readonly relayer: Relayer | null;
  /** No node responds, so the contracts are unknown. */
  readonly isUnread: boolean;
}

/** The maximum loss of gas. On the test network, gas has no value. */
const mostLostWei = ({ failedGasWei }: Config, network: Network): bigint | null =>
  network === MAIN_NETWORK ? failedGasWei : null;

/** Creates the facilitator, own or remote, and the simulators that run before each transfer. */
function createSettling({ pool, seal, log, meter, chains }: Platform, config: Config) {
  // The test network's money and gas have no value.
  const ceilings = eachNetwork((network) => (network === MAIN_NETWORK ? config.costCeiling : null));
  const simulator = (network: Network, by: Pick<SimulatorParts, "sentBy" | "simulateTogether">) =>
    createTransferSimulator({
      client: chains[network].client,
      network: NETWORKS[network],
      ceiling: ceilings[network],
      ...by,
    });
  if ("remote" in config.facilitator) {
    const settler = createRemoteSettler(config.facilitator.remote, config.facilitator.auth);
    const simulators = eachNetwork((network) =>
      simulator(network, { sentBy: null, simulateTogether: async () => null }),
    );
    return { relayers: null, settler, simulators };
  }
  const account = openAccount(config.facilitator.key);
  const lanes = eachNetwork((network) => {
    const { client } = chains[network];
    const { chainId } = NETWORKS[network];
    const relayer = createRelayer({
      pool,
      log,
      account,
      seal,
      client,
      chainId,
      counter: meter && {
        relayed: (mined) => meter.relayed(network, mined),
        replaced: () => meter.replaced(network),
        turnedAway: (because) => meter.turnedAway(network, because),
      },
      cargo: PAYMENTS,
      shares: SHARES.facilitator,
      mostLostWei: mostLostWei(config, network),
    });
    const { payTo, batches: policy } = config;
    const sharing = transfersTo({ usdc: NETWORKS[network].usdc.address, payTo });
    return {
      relayer,
      ceiling: ceilings[network],
      batching: createBatching({ client, network: NETWORKS[network], relayer, sharing, policy, log, meter }),
    };
  });
  return {
    relayers: eachNetwork((network) => lanes[network].relayer),
    settler: createInProcessSettler(lanes),
    simulators: eachNetwork((network) => {
      const { relayer, batching } = lanes[network];
      return simulator(network, { sentBy: relayer, simulateTogether: batching.simulate });
    }),
  };
}

/** The 50 most expensive holds take 12 million gas, and a transaction on Base may use 16.7 million (EIP-7825). */
const MOST_HOLDS = 50;

/** Returns the batching of a contract's holds; null without an account that sends them. */
function holdBatchings(
  { chains, log, meter }: Platform,
  { batches }: Pick<Config, "batches">,
  { contracts, relayer }: EscrowAccount,
): (contract: Address) => Batching<SignedHold> | null {
  const parts = {
    client: chains[MAIN_NETWORK].client,
    network: NETWORKS[MAIN_NETWORK],
    policy: { ...batches, most: Math.min(batches.most, MOST_HOLDS) },
    log,
    // Only the facilitator reports whether its batches are on.
    meter: meter && { ...meter, batching: () => undefined },
  };
  const batchingOf = ({ address }: EscrowContract, sender: Relayer) =>
    [address, createBatching({ ...parts, relayer: sender, sharing: holdsOf(address) })] as const;
  const batchings = new Map(relayer === null ? [] : contracts.map((contract) => batchingOf(contract, relayer)));
  return (contract) => batchings.get(contract) ?? null;
}

/** An unresolved payment older than this triggers an alert. Alerts do not repeat before `ALERT_AGAIN_MS`. */
const ALERT_AFTER_SECONDS = 120;
const ALERT_AGAIN_MS = 600_000;

/** Warns about pending payments every ten minutes, and once about each payment that makes no progress. */
function watchPayments(journal: Journal, log: Platform["log"]): () => Promise<void> {
  let warnedAt = Number.NEGATIVE_INFINITY;
  return async () => {
    const { unresolved, oldestSeconds } = await journal.backlog();
    if ((oldestSeconds ?? 0) <= ALERT_AFTER_SECONDS) warnedAt = Number.NEGATIVE_INFINITY;
    else if (elapsedMs() - warnedAt > ALERT_AGAIN_MS) {
      warnedAt = elapsedMs();
      log.warn({ unresolved, oldest_seconds: oldestSeconds }, "payments are waiting for their outcome");
    }
    const parked = await journal.nameParked();
    if (parked.length === 0) return;
    // The buyer of a settled payment was charged and has no result.
    const level = parked.some(({ state }) => state === "settled") ? "error" : "warn";
    log[level]({ payments: parked }, "payments make no progress; they are parked and checked once an hour");
  };
}
