import { expect, test } from "vitest";
import { withNotices } from "../../../api/escrow/carry-outcomes.ts";
import type { EscrowStore, Stored, Task } from "../../../api/escrow/store.ts";

/** Everything that can happen without a write has happened. */
const turns = () => new Promise((done) => setImmediate(done));

const OUTCOME = { decision: "release", transaction: "0xaa", block: 7, blockHash: "0xbb", gas: 1n } as const;
const ONE = "0x01";
const OTHER = "0x02";

/** A store of which only what is told matters; each write takes until it is let go. */
function open(became: Stored = "stored") {
  const written = Promise.withResolvers<void>();
  const store = {
    decide: () => written.promise.then(() => became),
    mined: () => written.promise,
  } as unknown as EscrowStore;
  return { ...withNotices(store), write: () => written.resolve() };
}

const decide = (store: EscrowStore) => store.decide(null as never, null as never, null as never);
const mine = (store: EscrowStore, payment: typeof ONE | typeof OTHER) =>
  store.mined({ payment } as unknown as Task, OUTCOME);

test("a decision is heard of once it is stored", async () => {
  const { store, notices, write } = open();
  let heard = 0;
  notices.onDecided(() => heard++);
  const deciding = decide(store);
  await turns();
  expect(heard).toBe(0);
  write();
  expect(await deciding).toBe("stored");
  expect(heard).toBe(1);
});

test.each(["taken", "spent"] as const)("what was %s is no decision", async (became) => {
  const { store, notices, write } = open(became);
  let heard = 0;
  notices.onDecided(() => heard++);
  write();
  expect(await decide(store)).toBe(became);
  expect(heard).toBe(0);
});

test("who waits for a payment wakes when its end is stored, and by no other's", async () => {
  const { store, notices, write } = open();
  const woken: string[] = [];
  const { signal } = new AbortController();
  const all = ["first", "second"].map((name) =>
    notices.ended(ONE, signal).then((by) => woken.push(`${name} ${by?.transaction}`)),
  );
  void notices.ended(OTHER, signal).then(() => woken.push("other"));
  const mining = mine(store, ONE);
  await turns();
  expect(woken).toEqual([]);
  write();
  await mining;
  await Promise.all(all);
  await turns();
  expect(woken).toEqual(["first 0xaa", "second 0xaa"]);
});

test("who waits no longer is let go", async () => {
  const { notices } = open();
  const unwanted = new AbortController();
  let woken = false;
  const ended = notices.ended(ONE, unwanted.signal).finally(() => {
    woken = true;
  });
  await turns();
  expect(woken).toBe(false);
  unwanted.abort();
  expect(await ended).toBeNull();
});
