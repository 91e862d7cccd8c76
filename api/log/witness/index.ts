import type pg from "pg";
import type { Logger } from "pino";
import { parseVerifierKey } from "../../../packages/verifier/src/tlog/verifier-key.ts";
import type { ChainReader } from "../../platform/chain/chain.ts";
import type { Config } from "../../platform/config/config.ts";
import { MAIN_NETWORK, NETWORKS } from "../../platform/networks.ts";
import type { Relayer } from "../../platform/relayer/relayer.ts";
import { type AnchorChain, createLogAnchors } from "../anchor/chain.ts";
import { type AnchorStore, createAnchorStore, type Progress } from "../anchor/store.ts";
import { createLogCheckpoints } from "../checkpoints-store.ts";
import type { LogState } from "../integrate.ts";
import type { LogStore } from "../store.ts";
import { createKnownHeads, type HeadSource, witnessSources } from "./ask-witnesses.ts";
import { createWitnessCalls } from "./calls-web.ts";
import { createOffer } from "./offer-checkpoint.ts";
import { createWitnessStore, readWitnessed } from "./store.ts";

interface AnchoringParts {
  readonly generation: number;
  readonly origin: string;
  readonly store: Pick<LogStore, "newest">;
  readonly anchors: AnchorStore;
  readonly chain: AnchorChain;
  readonly everySeconds: number;
  readonly log: { error(facts: object, message: string): void };
}

/**
 * Anchors the newest checkpoint every `everySeconds`, in one process, and follows the anchor until its block is final. The
 * first anchor is made `everySeconds` after the log began.
 */
export function createAnchoring({ generation, origin, store, anchors, chain, everySeconds, log }: AnchoringParts) {
  return async (): Promise<void> => {
    if ((await anchors.open(generation)) === null) {
      const newest = await store.newest(generation);
      if (newest !== null) await anchors.begin(generation, newest, everySeconds);
    }
    const open = await anchors.open(generation);
    if (open === null) return;
    const progress = await chain.carry(origin, open);
    if (isSame(progress, open)) return;
    await anchors.progress(generation, open.size, progress);
    if (progress.state === "failed") log.error({ size: open.size }, "the chain rejects an anchor of the log");
  };
}

const isSame = (one: Progress, other: Progress): boolean =>
  one.state === other.state && one.transaction === other.transaction && one.block === other.block;

interface WitnessingParts {
  readonly config: Pick<Config, "log">;
  readonly pool: pg.Pool;
  readonly chain: ChainReader;
  /** The arbiter's account; null if it sends no transactions. */
  readonly relayer: Relayer | null;
  /** The verifier key of the log that is written. */
  readonly vkey: string;
  readonly store: LogStore;
  readonly now: () => Date;
  readonly log: Logger;
}

/** The state of the transparency log, its witnesses, and its anchors. */
export interface LogFacts extends LogState {
  /** The size of the newest checkpoint, 0 before the first. */
  readonly size: number;
  readonly quorum: number;
  /** The newest checkpoint that enough witnesses have cosigned, and when it reached the quorum, or null. */
  readonly witnessed: { readonly size: number; readonly at: Date } | null;
  readonly witnesses: readonly {
    readonly name: string;
    readonly size: number | null;
    readonly cosignedAt: Date | null;
    readonly error: { readonly text: string; readonly at: Date } | null;
    /** The reason that the log signs nothing until this witness cosigns, or null. */
    readonly danger: string | null;
  }[];
  readonly anchor: {
    readonly size: number;
    readonly state: string;
    readonly transaction: string | null;
    readonly block: number | null;
    readonly at: Date;
  } | null;
}

/** Once a day. */
const ANCHOR_SECONDS = 86_400;

/** Creates the log's witnesses and its anchors on Base. */
export function createWitnessing({ config, pool, chain, relayer, vkey, store, now, log }: WitnessingParts) {
  const { witnessed: policy, generation, anchorSeconds } = config.log;
  const key = parseVerifierKey(vkey);
  const witnesses = createWitnessStore(pool);
  const calls = createWitnessCalls();
  const everySeconds = anchorSeconds ?? ANCHOR_SECONDS;
  const anchors = createAnchorStore(pool, NETWORKS[MAIN_NETWORK].chainId);
  const anchorChain = relayer === null || everySeconds === 0 ? null : createLogAnchors({ chain, relayer });
  const danger = async (of: number): Promise<string | null> => {
    const known = await witnesses.list(of);
    const found = known.find((one) => one.danger !== null && policy.witnesses.some((w) => w.key.vkey === one.vkey));
    return found?.danger ?? null;
  };
  const begin = (distrust: () => void) => {
    const offer = createOffer({ generation, key, store, witnesses, calls, distrust, now });
    return policy.witnesses.map((witness) => ({ name: `witness ${witness.key.name}`, run: () => offer(witness) }));
  };
  const anchoring =
    anchorChain &&
    createAnchoring({ generation, origin: key.name, store, anchors, chain: anchorChain, everySeconds, log });
  return {
    checkpoints: createLogCheckpoints({ pool, store, witnesses, policy }),
    heads: createKnownHeads([...witnessSources(policy.witnesses, calls), ...anchorSources(anchorChain)], key),
    danger,
    jobs: (distrust: () => void) => [
      ...begin(distrust),
      ...(anchoring === null ? [] : [{ name: "log anchor", run: anchoring }]),
    ],
    facts: async (state: LogState): Promise<LogFacts> => {
      const [newest, witnessed, known, anchor] = await Promise.all([
        store.newest(generation),
        readWitnessed(pool, policy, generation),
        witnesses.list(generation),
        anchors.newest(generation),
      ]);
      const found = policy.witnesses.map(({ key: { name, vkey } }) => {
        const one = known.find((record) => record.vkey === vkey);
        const { size = null, at: cosignedAt = null } = one?.cosigned ?? {};
        return { name, size, cosignedAt, error: one?.error ?? null, danger: one?.danger ?? null };
      });
      return { ...state, size: newest?.size ?? 0, quorum: policy.quorum, witnessed, witnesses: found, anchor };
    },
  };
}

const anchorSources = (chain: ReturnType<typeof createLogAnchors> | null): readonly HeadSource[] =>
  chain === null
    ? []
    : [
        {
          name: "the anchors on Base",
          async head({ name: origin }) {
            const found = await chain.newest(origin);
            return found && { ...found, source: `the anchor in block ${found.block} of Base`, at: null };
          },
        },
      ];
