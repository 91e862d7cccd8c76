import fc from "fast-check";
import { expect, test } from "vitest";
import { eachNetwork } from "../../../api/platform/networks.ts";
import type { Status } from "../../../api/settlement-status/decide.ts";
import { createLookUp, type LookUp } from "../../../api/settlement-status/look-up.ts";
import type { Question } from "../../../api/settlement-status/question.ts";
import type { FinalFacts } from "../../../api/settlement-status/reading.ts";
import {
  FINAL_AFTER,
  factsInMemory,
  MOST_BEHIND,
  NO_FACTS,
  type NodeKind,
  nodesOf,
  type Outcome,
  type Scene,
  threeNodes,
  timeOf,
  type World,
  worldWith,
} from "../../support/settlement-status/branching-chain.ts";

// For any time, process, and question, a status reported as final matches the final chain.

const MINUTE_BLOCKS = 31;

const PAYER = `0x${"11".repeat(20)}` as const;
const OPEN: Question = {
  network: "eip155:8453",
  from: PAYER,
  nonce: `0x${"77".repeat(32)}`,
  ...{ to: null, value: null, validAfter: null, validBefore: null, transaction: null },
};

/** The outcome on the final chain, which is the only possible final status. */
function outcome({ branches, end }: World, { validBefore }: Question): Outcome | "expired" | null {
  const last = branches.at(-1)?.outcome ?? null;
  if (validBefore === null) return last;
  return last !== null && last.block < end ? last : "expired";
}

function expectTrue(given: World, question: Question, status: Status): void {
  if (!status.final) return;
  const expected = outcome(given, question);
  if (expected === "expired" || expected === null) expect(status.status).toBe(expected);
  else
    expect(status).toMatchObject({
      status: expected.isCanceled ? "canceled" : "settled",
      end: { block: { number: expected.block } },
      asOf: { number: expected.block },
    });
}

interface Observed {
  readonly question: Question;
  readonly status: Status;
  readonly head: number;
  readonly nodes: readonly NodeKind[];
  /** The nodes of the last minute, for which a status that is not final is reused. */
  readonly lately: readonly NodeKind[];
}

const FREELY = { asker: "192.0.2.1", maySearch: async () => true };

/** If no node has the block, the route returns a 503. */
function unavailable(error: Error): null {
  expect(error.message).toMatch(/^no node shows block/);
  return null;
}

/**
 * Asks processes that share their final facts, concurrently, and processes without any. Calls `each` with every status.
 */
async function play(given: World, areOnBranch: boolean, each: (observed: Observed) => void): Promise<void> {
  const scene: Scene = { head: 0, nodes: [], areOnBranch };
  const start = (facts: FinalFacts) => {
    const reader = nodesOf(given.branches, scene);
    return createLookUp({
      readers: eachNetwork(() => reader),
      known: async () => null,
      facts: eachNetwork(() => facts),
      now: () => new Date(Number(timeOf(scene.head)) * 1000),
    });
  };
  const shared = factsInMemory();
  const sharing = [start(shared), start(shared)];
  const alone = start(NO_FACTS);
  const ended: Question = { ...OPEN, validBefore: timeOf(given.end) };
  const final = new Map<Question, Status>();
  const past: { readonly at: number; readonly nodes: readonly NodeKind[] }[] = [];
  for (const { grown: more, nodes } of given.moments) {
    Object.assign(scene, { head: scene.head + more, nodes });
    past.push({ at: scene.head, nodes });
    const lately = past.filter(({ at }) => at >= scene.head - MINUTE_BLOCKS).flatMap((one) => one.nodes);
    for (const question of [ended, OPEN]) {
      const ask = async (lookUp: LookUp) => {
        const status = await lookUp(question, FREELY).catch(unavailable);
        if (status === null) return null;
        expectTrue(given, question, status);
        each({ question, status, head: scene.head, nodes, lately });
        return status;
      };
      for (const status of await Promise.all(sharing.map(ask))) {
        const before = final.get(question);
        if (before !== undefined) expect(status).toEqual(before);
        if (status?.final) final.set(question, status);
      }
      await ask(alone);
      await ask(start(NO_FACTS));
    }
  }
}

test("While one of three nodes keeps up, an authorization that will settle is never reported expired, and a final status never changes", async () => {
  const seen = new Map<string, number>();
  await fc.assert(
    fc.asyncProperty(worldWith(threeNodes), async (given) =>
      play(given, false, ({ question, status, head, nodes: [...answering], lately }) => {
        seen.set(status.status, (seen.get(status.status) ?? 0) + 1);
        const expected = outcome(given, question);
        if (expected === null || expected === "expired" || expected.block > head - FINAL_AFTER) return;
        // A lagging node does not know about a recent reorganization.
        const isQuiet = given.branches.every(({ since }) => since > head || since <= head - MOST_BEHIND);
        const areHonest = isQuiet && lately.every((node) => node !== "stale" && node !== "left");
        if (areHonest) expect(status.status).not.toBe("pending");
        // If one node has pruned a block, another one has it. The state of an old block takes two nodes.
        const kept = answering.filter((node) => node === 0).length;
        const isLate = question.validBefore !== null && timeOf(expected.block) >= question.validBefore;
        if (kept >= (isLate ? 2 : 1) && answering.every((node) => node === 0 || node === "pruned"))
          expect(status.status).not.toBe("used");
      }),
    ),
    { numRuns: 1_500 },
  );
  for (const status of ["pending", "expired", "settled", "canceled"])
    expect(seen.get(status), status).toBeGreaterThan(20);
});

test("A final status is true and never changes even if nodes respond in any order, many of them lag, and one response is wrong", async () => {
  const nodes = fc
    .record({
      lags: fc.array(fc.constantFrom<NodeKind>(0, 0, 460, MOST_BEHIND), { minLength: 16, maxLength: 16 }),
      wrong: fc.constantFrom<NodeKind>("stale", "left"),
      place: fc.nat({ max: 15 }),
    })
    .map(({ lags, wrong, place }) => lags.with(place, wrong));
  const final = { count: 0 };
  await fc.assert(
    fc.asyncProperty(worldWith(nodes), async (given) =>
      play(given, true, ({ status }) => {
        if (status.final) final.count++;
      }),
    ),
    { numRuns: 1_500 },
  );
  expect(final.count).toBeGreaterThan(100);
});

test("While all nodes keep up, a reported status was true within the last minute, and final ones are reported as final", async () => {
  const nodes = fc.constant<readonly NodeKind[]>([0]);
  await fc.assert(
    fc.asyncProperty(worldWith(nodes), async (given) => {
      const { branches, end } = given;
      const last = branches.at(-1)?.outcome ?? null;
      await play(given, false, ({ question, status, head }) => {
        const lately = branches.filter(
          ({ since }, place) => since <= head && (branches[place + 1]?.since ?? head) >= head - MINUTE_BLOCKS,
        );
        if ("end" in status)
          expect(lately.map(({ outcome: one }) => [one?.block, one?.isCanceled])).toContainEqual([
            status.end.block.number,
            status.status === "canceled",
          ]);
        if (branches.some(({ since }) => since > head)) return;
        const isOpen = question.validBefore === null;
        const final = head - FINAL_AFTER;
        const isEnded = last !== null && last.block <= final;
        const isUnused = last === null || last.block > head;
        if (isEnded || (!isOpen && end <= final && isUnused)) expect(status.final).toBe(true);
      });
    }),
    { numRuns: 1_500 },
  );
});
