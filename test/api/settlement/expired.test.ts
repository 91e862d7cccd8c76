import fc from "fast-check";
import { expect, test } from "vitest";
import type { AuthorizationReader, HashedBlock, NonceEnd } from "../../../api/settlement/authorization-reader.ts";
import { createLookUp } from "../../../api/settlement/look-up.ts";
import type { Question } from "../../../api/settlement/question.ts";

// A chain like Base under nodes that lag: what has been called final never changes, whatever is asked when.

const PAYER = `0x${"11".repeat(20)}` as const;
const PAYEE = `0x${"22".repeat(20)}` as const;
const hashOf = (number: number) => `0x${number.toString(16).padStart(64, "0")}` as const;
const SECONDS_A_BLOCK = 2;
const START = 1_700_000_000;
const timeOf = (block: number) => BigInt(START + block * SECONDS_A_BLOCK);
/** A block is final after 13 minutes at the earliest. */
const FINAL_AFTER = 450;

interface World {
  /** Null if nobody submits the authorization; USDC takes it only before its end. */
  readonly usedIn: number | null;
  readonly isCanceled: boolean;
  /** How many blocks before the head the authorization ends. */
  readonly validBefore: bigint;
  /** At each question: by how many blocks the chain has grown, and how far behind the nodes are that answer. */
  readonly questions: readonly { readonly grown: number; readonly lags: readonly number[] }[];
}

const world: fc.Arbitrary<World> = fc
  .record({
    usedIn: fc.option(fc.integer({ min: 1, max: 600 }), { nil: null }),
    isCanceled: fc.boolean(),
    end: fc.integer({ min: 1, max: 700 }),
    questions: fc.array(
      fc.record({
        grown: fc.integer({ min: 0, max: 400 }),
        // One of three nodes keeps up.
        lags: fc.array(fc.constantFrom(0, 1, 30, 299, 460, 900), { minLength: 2, maxLength: 2 }),
      }),
      { minLength: 2, maxLength: 8 },
    ),
  })
  .map(({ usedIn, isCanceled, end, questions }) => ({
    usedIn: usedIn !== null && (isCanceled || usedIn < end) ? usedIn : null,
    isCanceled,
    validBefore: timeOf(end),
    questions,
  }));

/** Nodes that take turns, each as far behind as it is. */
function nodes({ usedIn, isCanceled }: World, view: { head: number; lags: readonly number[] }): AuthorizationReader {
  let turn = 0;
  const head = () => {
    const lags = [...view.lags, 0];
    return Math.max(0, view.head - (lags[turn++ % lags.length] ?? 0));
  };
  const block = (number: number): HashedBlock => ({ number, time: timeOf(number), hash: hashOf(number) });
  const state = async () => {
    const at = head();
    return { used: usedIn !== null && usedIn <= at, at: block(at) };
  };
  const end = (at: number): NonceEnd | null =>
    usedIn === null || usedIn > at
      ? null
      : {
          transaction: hashOf(1_000_000 + usedIn),
          block: block(usedIn),
          transfer: isCanceled ? null : { to: PAYEE, value: 1n },
        };
  return {
    state,
    stateAgain: state,
    async final() {
      // The older of two readings.
      return block(Math.max(0, Math.min(head(), head()) - FINAL_AFTER));
    },
    endIn: async () => end(head()),
    async search() {
      const found = end(head());
      return found === null ? "unfinished" : { found };
    },
    standing: async ({ number }) => (number <= head() - FINAL_AFTER ? "final" : "pending"),
    verifyContractSignature: async () => false,
  };
}

test("nothing has expired that ever settles, and what is final stays as it was said", async () => {
  const seen = new Map<string, number>();
  await fc.assert(
    fc.asyncProperty(world, async (given) => {
      const view = { head: 0, lags: [] as readonly number[] };
      const reader = nodes(given, view);
      const lookUp = createLookUp({
        readers: { "eip155:8453": reader, "eip155:84532": reader },
        known: async () => null,
        now: () => new Date(Number(timeOf(view.head)) * 1000),
      });
      const question: Question = {
        ...{ network: "eip155:8453", from: PAYER, nonce: hashOf(1), to: null, value: null, validAfter: null },
        ...{ validBefore: given.validBefore, transaction: null },
      };
      let last: string | null = null;
      for (const { grown, lags } of given.questions) {
        Object.assign(view, { head: view.head + grown, lags });
        const status = await lookUp(question, async () => true);
        seen.set(status.status, (seen.get(status.status) ?? 0) + 1);
        // What has expired can still be canceled, which changes nothing.
        if (status.status === "expired") expect(given.usedIn === null || given.isCanceled).toBe(true);
        const isOver = given.usedIn !== null && given.usedIn <= view.head - FINAL_AFTER;
        if (isOver) expect(status.status).not.toBe("pending");
        if (last !== null) expect([status.status, status.final]).toEqual([last, true]);
        if (status.final) last = status.status;
      }
    }),
    { numRuns: 2_000 },
  );
  for (const status of ["pending", "expired", "settled", "canceled"])
    expect(seen.get(status), status).toBeGreaterThan(20);
});
