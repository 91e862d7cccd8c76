import type { VerifierKey } from "../../../packages/verifier/src/tlog/verifier-key.ts";
import type { KnownHead, KnownHeads } from "../known-heads.ts";
import type { WitnessCalls } from "./ports.ts";
import type { Witness } from "./settings.ts";
import { headUrl, witnessedHead } from "./witnessed-head.ts";

/** Somebody who may have seen the log: a witness, or the anchors on a chain. */
export interface HeadSource {
  readonly name: string;
  /** Null if it has not seen the log of this key, whose name is its origin. Rejects without an answer that proves something. */
  readonly head: (log: VerifierKey) => Promise<KnownHead | null>;
}

export const witnessSources = (witnesses: readonly Witness[], calls: WitnessCalls): readonly HeadSource[] =>
  witnesses.map((witness) => ({
    name: `the witness ${witness.key.name}`,
    head: async (log) => witnessedHead(witness, log, await calls.get(headUrl(witness, log.name))),
  }));

/** @param key the log's */
export const createKnownHeads = (sources: readonly HeadSource[], key: VerifierKey): KnownHeads => ({
  sources: sources.length,
  async ask() {
    const answers = await Promise.all(
      sources.map(({ name, head }) =>
        head(key).then(
          (found) => ({ found, silent: [] }),
          (error: Error) => ({ found: null, silent: [`${name} (${error.message})`] }),
        ),
      ),
    );
    return {
      heads: answers.flatMap(({ found }) => (found === null ? [] : [found])),
      silent: answers.flatMap(({ silent }) => silent),
    };
  },
});
