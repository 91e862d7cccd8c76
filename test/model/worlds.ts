import type { Sent, World } from "./world.ts";

const buy = (change: Partial<Sent> = {}): Sent => ({ authorization: 0, asks: "r1", id: null, by: "payer", ...change });

/**
 * `MODEL=full NODE_OPTIONS=--max-old-space-size=8192 npx vitest run test/model` explores larger bounds, with all
 * processes in most worlds, and takes minutes.
 */
const full = process.env.MODEL === "full";

type Bounds = Pick<World, "apiProcesses" | "resolver" | "pauses" | "sells">;
const bounded = (world: World, quick: Bounds, whole: Bounds = { pauses: "everywhere" }): World => ({
  ...world,
  ...(full ? whole : quick),
});

const EVERYONE: Bounds = {};
const NO_RESOLVER: Bounds = { resolver: "sleeps", pauses: "everywhere" };
const ONE_PROCESS: Bounds = { apiProcesses: 1, pauses: "everywhere" };
/** Without this bound, sales are made both ways. */
const AT_ONCE: Bounds = { sells: "immediately" };

/** Two payments for one request. */
const PAIR = [buy(), buy({ authorization: 1 })];

/**
 * The explored worlds. In each, the client may resend every request without limit, and the facilitator may report and
 * do anything.
 */
export const WORLDS = {
  core: bounded({ sent: [buy()], lag: true, handlerFails: true }, EVERYONE),
  immediate: bounded({ sent: [buy()], sells: "immediately", lag: true }, NO_RESOLVER),
  noticed: bounded({ sent: [buy()], sells: "noticed by others", lag: true, handlerFails: true }, NO_RESOLVER),
  preflight: bounded(
    { sent: [buy()], refusals: true, payerBroadcasts: true, lag: true, handlerFails: true },
    { ...NO_RESOLVER, ...AT_ONCE },
  ),
  otherTransaction: bounded({ sent: [buy()], otherTransaction: true }, { ...NO_RESOLVER, ...AT_ONCE }),
  burn: bounded({ sent: [buy()], burns: true, refusals: true }, { ...NO_RESOLVER, ...AT_ONCE }),
  routes: bounded({ sent: [buy(), buy({ asks: "r1?q" }), buy({ asks: "r2" })] }, { ...NO_RESOLVER, ...AT_ONCE }),
  identifier: bounded({ sent: [buy(), buy({ asks: "r2", id: "Y" })] }, { ...NO_RESOLVER, ...AT_ONCE }),
  sameId: bounded(
    { sent: [buy({ id: "X" }), buy({ authorization: 1, id: "X" })], refusals: true },
    { resolver: "sleeps" },
    EVERYONE,
  ),
  misfit: bounded(
    { sent: [buy({ id: "X" }), buy({ authorization: 1, id: "X", otherTerms: true })] },
    { ...NO_RESOLVER, ...AT_ONCE },
  ),
  twoPayments: bounded({ sent: PAIR, clock: "stopped", calm: true }, EVERYONE),
  purse: bounded({ sent: PAIR, purse: { balance: 1, most: 2 }, clock: "stopped" }, { ...NO_RESOLVER, ...AT_ONCE }),
  purseCalm: bounded(
    {
      sent: PAIR,
      purse: { balance: 1, most: 2 },
      clock: "stopped",
      calm: true,
    },
    { ...NO_RESOLVER, ...AT_ONCE },
  ),
  crowd: bounded(
    { sent: PAIR, purse: { balance: 2, most: 1 }, clock: "stopped" },
    { resolver: "sleeps", ...AT_ONCE },
    EVERYONE,
  ),
  twoRequests: bounded(
    { sent: [buy({ id: "X" }), buy({ authorization: 1, asks: "r2", id: "X" })], clock: "stopped", calm: true },
    EVERYONE,
  ),
  time: bounded({ sent: [buy()], bodyStopsFitting: true }, { ...NO_RESOLVER, ...AT_ONCE }),
  restored: bounded({ sent: [buy()], restored: true, handlerFails: true }, { ...NO_RESOLVER, ...AT_ONCE }),
  forged: bounded({ sent: [buy(), buy({ by: "forger" }), buy({ otherTerms: true })] }, { ...NO_RESOLVER, ...AT_ONCE }),
  reader: bounded({ sent: [buy({ id: "X" }), buy({ by: "reader" })] }, { ...NO_RESOLVER, ...AT_ONCE }),
  reorg: bounded({ sent: [buy()], reorganization: true }, { sells: "noticed by others" }),
  reorgAlone: bounded({ sent: [buy()], reorganization: true, lag: true, otherTransaction: true }, ONE_PROCESS),
  reverts: bounded({ sent: [buy()], reverts: true, lag: true }, NO_RESOLVER),
  revived: bounded(
    { sent: [buy()], refusals: true, payerBroadcasts: true, reverts: true, clock: "stopped" },
    NO_RESOLVER,
  ),
  revivedReorg: bounded(
    { sent: [buy()], refusals: true, payerBroadcasts: true, reorganization: true, clock: "stopped" },
    ONE_PROCESS,
    ONE_PROCESS,
  ),
  revertsForGood: bounded({ sent: [buy()], reverts: "for good", clock: "stopped" }, EVERYONE),
  revertsReorg: bounded({ sent: [buy()], reverts: true, reorganization: true }, ONE_PROCESS),
  reorgBurn: bounded({ sent: [buy()], reorganization: true, burns: true }, { ...ONE_PROCESS, ...AT_ONCE }),
  batch: bounded({ sent: PAIR, relay: { fails: true }, clock: "stopped", calm: true }, EVERYONE),
  batchRace: bounded({ sent: [buy()], relay: { fails: true }, clock: "stopped" }, NO_RESOLVER),
  batchPair: bounded(
    { sent: PAIR, relay: {}, clock: "stopped", calm: "except for leases" },
    { resolver: "sleeps", ...AT_ONCE },
    { resolver: "sleeps" },
  ),
  // In these two worlds no window closes, so a sale removed by a reorganization is never reversed. No resolver watches
  // it either.
  batchLost: bounded(
    { sent: [buy()], relay: { fails: true, elsewhere: true }, reorganization: true, clock: "stopped" },
    { resolver: "sleeps" },
    NO_RESOLVER,
  ),
  batchReorg: bounded(
    { sent: PAIR, relay: { fails: true, least: 2 }, reorganization: true, clock: "stopped", calm: true },
    { resolver: "sleeps" },
    NO_RESOLVER,
  ),
  batchStranger: bounded(
    { sent: [buy()], relay: { fails: true }, payerBroadcasts: true, lag: true, clock: "stopped" },
    { ...NO_RESOLVER, ...AT_ONCE },
    NO_RESOLVER,
  ),
  // Anyone may make a hold, and its purchase is noticed by others.
  batchHolds: bounded(
    {
      sent: [buy()],
      relay: { fails: true },
      payerBroadcasts: true,
      lag: true,
      sells: "noticed by others",
      clock: "stopped",
    },
    { resolver: "sleeps" },
    NO_RESOLVER,
  ),
  batchFees: bounded(
    { sent: [buy()], relay: { fails: true, replaced: true }, lag: true, clock: "stopped" },
    { ...ONE_PROCESS, ...AT_ONCE },
  ),
  batchTime: bounded(
    { sent: [buy()], relay: { fails: true }, reorganization: true },
    { ...ONE_PROCESS, ...AT_ONCE },
    ONE_PROCESS,
  ),
  batchKeys: bounded(
    { sent: [buy()], relay: { fails: true, keys: 2 }, clock: "stopped" },
    { ...NO_RESOLVER, ...AT_ONCE },
  ),
} satisfies Record<string, World>;

/** A world in which a promise breaks by design. */
export const BEYOND = {
  calldata: { sent: [buy(), buy({ by: "reader" })], resolver: "sleeps" },
} satisfies Record<string, World>;

export type WorldName = keyof typeof WORLDS;
