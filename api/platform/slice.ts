import type pg from "pg";
import type { Logger } from "pino";
import type { ChainReader } from "./chain/chain.ts";
import type { Seal } from "./db/seal.ts";
import type { Peers } from "./http/peers.ts";
import type { Listed, Route, Tag } from "./http/route.ts";
import type { Meter } from "./metrics/meter.ts";
import type { Network } from "./networks.ts";
import type { compactJws, FlattenedJws, Signer } from "./signing/document.ts";
import type { PublicJwk } from "./signing/keys.ts";

/** The shared foundation of all slices. */
export interface Platform {
  readonly pool: pg.Pool;
  readonly chains: Readonly<Record<Network, ChainReader>>;
  readonly keys: ServiceKeys;
  readonly seal: Seal;
  readonly peers: Peers;
  readonly log: Logger;
  /** Null if metrics are off. */
  readonly meter: Meter | null;
  readonly now: () => Date;
  /** Whether new requests should be sent to this process. */
  readonly isReady: () => boolean;
}

/** The signers that use the service's own key. */
export interface ServiceKeys {
  readonly signer: Signer;
  readonly signJws: (payload: string) => Promise<FlattenedJws>;
  readonly signCompact: ReturnType<typeof compactJws>;
  /** The published keys, the current one first, then the retired ones. */
  readonly published: readonly PublicJwk[];
}

/** Recurring work of a slice. A process runs it once at a time. */
export interface Job {
  /** Unique; the metrics and the status page show it. */
  readonly name: string;
  /** The pause after each run. */
  readonly everyMs: number;
  readonly run: () => Promise<unknown>;
  /** Registers a function to call when there is work before the pause is over. */
  readonly onWork?: (wake: () => void) => void;
  /** Resolves when work that a run has started in the background is done. */
  readonly idle?: () => Promise<unknown>;
}

/** A feature: its routes, and the jobs that it runs. */
export interface Slice {
  readonly routes: readonly Listed[];
  readonly jobs: readonly Job[];
}

/** The whole table of routes, complete by the time a route is called. */
export type Table = () => readonly Listed[];

/** Assigns routes to a heading of the published lists. */
export const under = (tag: Tag, routes: readonly Route[]): readonly Listed[] =>
  routes.map((route) => ({ ...route, tag }));
