import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { eachNetwork } from "../../../api/platform/networks.ts";
import type { Status } from "../../../api/settlement-status/decide.ts";
import { createLookUp, type LookUp } from "../../../api/settlement-status/look-up.ts";
import type { Question } from "../../../api/settlement-status/question.ts";
import type { AuthorizationReader, FinalFacts } from "../../../api/settlement-status/reading.ts";
import {
  type Branch,
  FINAL_AFTER,
  factsInMemory,
  MOST_BEHIND,
  NO_FACTS,
  type NodeKind,
  nodesOf,
  type Outcome,
  PAYEE,
  type Scene,
  threeNodes,
  timeOf,
  type World,
  worldWith,
} from "../../support/settlement-status/branching-chain.ts";

// One scene per safeguard of a look-up: nodes answer in exactly the order that would mislead it.

const HASH = `0x${"77".repeat(32)}` as const;

function stage(branches: readonly Branch[], end: number | null, facts: FinalFacts = NO_FACTS) {
  const scene = { head: 0, nodes: [] as readonly NodeKind[], areOnBranch: false };
  const start = (reader: AuthorizationReader = nodesOf(branches, scene)) =>
    createLookUp({
      readers: eachNetwork(() => reader),
      known: async () => null,
      facts: eachNetwork(() => facts),
      now: () => new Date(Number(timeOf(scene.head)) * 1000),
    });
  const question: Question = {
    ...{ network: "eip155:8453", from: `0x${"11".repeat(20)}`, nonce: HASH, to: null, value: null },
    ...{ validAfter: null, validBefore: end === null ? null : timeOf(end), transaction: null },
  };
  const first = start();
  return {
    start,
    question,
    at: (head: number, nodes: readonly NodeKind[], lookUp = first) => {
      Object.assign(scene, { head, nodes });
      return lookUp(question, { asker: "192.0.2.1", maySearch: async () => true });
    },
  };
}

/** A transfer in block 600, one block before the authorization ends. */
const PAID_LATE: readonly Branch[] = [{ since: 0, fork: 0, outcome: { block: 600, isCanceled: false } }];

test("One wrong reading proves nothing if all others are behind the final block", async () => {
  const { at } = stage(PAID_LATE, 601);
  // First the final block, then the readings.
  const status = await at(1_100, [0, 0, "stale", 900, 900, ...Array<NodeKind>(11).fill(0)]);
  expect(status).toMatchObject({ status: "pending", window: "closed" });
});

test("Two wrong readings prove nothing against one that shows the nonce used", async () => {
  const { at } = stage(PAID_LATE, 601);
  expect(await at(1_100, [0, 0, "stale", "stale", 0])).toMatchObject({ status: "pending", final: false });
});

test("Any number of readings from nodes behind the final block proves nothing", async () => {
  const { at } = stage(PAID_LATE, 601);
  const status = await at(1_100, [0, 0, ...Array<NodeKind>(14).fill(900)]);
  expect(status).toMatchObject({ status: "pending", final: false });
});

test("A node that has not reached a settlement's block cannot deny it", async () => {
  const { at } = stage(PAID_LATE, null);
  expect(await at(700, [0])).toMatchObject({ status: "settled", final: false });
  expect(await at(705, [180])).toMatchObject({ status: "settled", final: false });
});

/** The transfer moves from block 600 to block 700. */
const MOVED: readonly Branch[] = [
  { since: 0, fork: 0, outcome: { block: 600, isCanceled: false } },
  { since: 1_000, fork: 551, outcome: { block: 700, isCanceled: false } },
];

/** The receipt comes from a node on an abandoned branch, and its block is remembered. */
async function misled(head = 1_045) {
  const staged = stage(MOVED, null);
  const status = await staged.at(head, [0, 0, "left", ...Array<NodeKind>(13).fill(0)]);
  expect(status).toMatchObject({ status: "settled", final: false, end: { block: { number: 600 } } });
  return staged;
}

test.each<readonly [string, readonly NodeKind[]]>([
  ["while the others are behind", ["left", 900, 900]],
  ["while another one does not", ["left", "left", 0]],
])("A block is not final just because some nodes still show it, %s", async (_, hashes) => {
  const { at } = await misled();
  // First the state and the final block, then the hashes.
  expect(await at(1_055, [0, 0, 0, ...hashes])).toMatchObject({ status: "settled", final: false });
});

test("A block that left the chain is forgotten immediately, and its replacement is reported", async () => {
  const { at } = await misled();
  expect(await at(1_055, [0])).toMatchObject({ status: "settled", end: { block: { number: 700 } } });
});

test("A status that is not final is reused for one minute, however often it is requested", async () => {
  const { at } = await misled(1_001);
  expect(await at(1_020, [0])).toMatchObject({ end: { block: { number: 600 } } });
  expect(await at(1_040, [0])).toMatchObject({ end: { block: { number: 700 } } });
});

test("If there are two proofs, the one stored first is returned", async () => {
  const kept = { number: 777, hash: HASH, time: timeOf(777) };
  const { at } = stage([{ since: 0, fork: 0, outcome: null }], 300, { ...NO_FACTS, putUnused: async () => kept });
  expect(await at(1_300, [0])).toMatchObject({ status: "expired", finalBlock: kept });
  expect(await at(1_400, [0])).toMatchObject({ status: "expired", finalBlock: kept });
});

test.each([
  { status: "settled", branches: PAID_LATE, end: null },
  { status: "expired", branches: [{ since: 0, fork: 0, outcome: null }], end: 300 },
])("A final `$status` stored by one process needs no call in another", async ({ status, branches, end }) => {
  const { at, start } = stage(branches, end, factsInMemory());
  const first = await at(1_300, [0]);
  expect(first).toMatchObject({ status, final: true });
  const asked: string[] = [];
  const silent = new Proxy({} as AuthorizationReader, {
    get: (_target, name) => () => {
      asked.push(String(name));
      return Promise.reject(new Error("no node answers"));
    },
  });
  expect(await at(1_400, [0], start(silent))).toEqual(first);
  expect(asked).toEqual([]);
});

/**
 * The final block (two calls) and the state. Then, because no log is found: the block, three hashes, and three states
 * at that block.
 */
const THEN = (...states: readonly NodeKind[]): readonly NodeKind[] => [...Array<NodeKind>(7).fill(0), ...states];

/** A use in this block that no search finds. */
function unfound(block: number, facts: FinalFacts = NO_FACTS) {
  const branches: readonly Branch[] = [{ since: 0, fork: 0, outcome: { block, isCanceled: false } }];
  const scene = { head: 2_000, nodes: [] as readonly NodeKind[], areOnBranch: false };
  const { at, start } = stage(branches, 601, facts);
  const reader: AuthorizationReader = { ...nodesOf(branches, scene), search: async () => "nowhere" };
  return {
    ask: (nodes: readonly NodeKind[]) => {
      scene.nodes = nodes;
      return at(2_000, [0], start(reader));
    },
  };
}

test("If a nonce was used long after the window, its earlier unused state proves expiry for good", async () => {
  const facts = factsInMemory();
  const { ask } = unfound(1_900, facts);
  const first = await ask(THEN(0, 0, 0));
  expect(first).toMatchObject({ status: "expired", final: true, finalBlock: { number: 601, time: timeOf(601) } });
  expect(await facts.get({ from: `0x${"11".repeat(20)}`, nonce: HASH }, timeOf(601))).toMatchObject({
    unusedBefore: { number: 601 },
  });
  // Repeating the request needs no call to a node.
  expect(await ask(THEN("stale", "stale", "stale"))).toEqual(first);
  expect(await unfound(1_900).ask(THEN("pruned", 0, 0))).toEqual(first);
});

test.each<readonly [string, number, readonly NodeKind[]]>([
  ["if only one node has the state of that time", 1_900, THEN("pruned", "pruned", 0)],
  ["if no node has that state", 1_900, THEN("pruned", "pruned", "pruned")],
  ["if two nodes contradict one that shows it used by then", 600, THEN("stale", "stale", 0)],
  ["if only one node has the block", 1_900, [0, 0, 0, 0, "pruned", "pruned", 0]],
])("A used nonce does not prove expiry %s", async (_, block, nodes) => {
  expect(await unfound(block).ask(nodes)).toMatchObject({ status: "used", final: false, search: "nowhere" });
});

test("A look-up tries the next node after one without the receipt or with an error", async () => {
  const { start, at } = stage(PAID_LATE, null);
  const end = {
    transaction: HASH,
    block: { number: 600, hash: HASH, time: timeOf(600) },
    transfer: { to: PAYEE, value: 1n },
  };
  let asked = 0;
  const reader: AuthorizationReader = {
    state: async () => ({ used: true, at: { number: 700, time: timeOf(700) } }),
    stateAgain: () => Promise.reject(new Error("unexpected call")),
    final: async () => ({ number: 250, hash: HASH, time: timeOf(250) }),
    endIn: async () => {
      if (asked++ === 0) return null;
      if (asked === 2) throw new Error("pruned history unavailable");
      return end;
    },
    search: async () => ({ transaction: HASH }),
    blockSince: () => Promise.reject(new Error("unexpected call")),
    usedBy: () => Promise.reject(new Error("unexpected call")),
    hashAt: async () => null,
    verifyContractSignature: async () => false,
    isDeployed: async () => false,
  };
  expect(await at(700, [0], start(reader))).toMatchObject({ status: "settled", end });
  const refusing = { ...reader, endIn: () => Promise.reject(new Error("pruned history unavailable")) };
  await expect(at(700, [0], start(refusing))).rejects.toThrow("pruned history");
});

describe("any chain, time, and question", () => {
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
});
