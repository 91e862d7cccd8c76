import fc from "fast-check";
import { expect, test } from "vitest";
import { createFairQueue } from "../../../../api/platform/chain/pace.ts";
import { networkOf } from "../../../../api/platform/http/request.ts";

// A client with many requests waits for its own and does not delay other clients and networks.

const OURS = "ours";
/** Returns this many clients of one network. */
const crowd = (addresses: number) => Array.from({ length: addresses }, (_, host) => `198.51.100.${host % 256}`);

test.each([
  ["198.51.100.7", "198.51.100.0/24"],
  ["198.51.100.255", "198.51.100.0/24"],
  ["198.51.10.7", "198.51.10.0/24"],
  ["2001:db8:1:2::/64", "2001:db8:1::/48"],
  ["2001:db8:1:ffff::/64", "2001:db8:1::/48"],
  ["2001:db8:2:2::/64", "2001:db8:2::/48"],
  ["unknown", "unknown"],
  ["", ""],
])("The client %s belongs to the network %s", (client, network) => {
  expect(networkOf(client)).toBe(network);
});

test("Networks take turns, and within a network its clients take turns", () => {
  const queue = createFairQueue<string>(100);
  for (const [item, client] of [
    ["a1", "10.0.0.1"],
    ["a2", "10.0.0.1"],
    ["a3", "10.0.0.1"],
    ["b1", "10.0.0.2"],
    ["c1", "10.0.9.1"],
    ["c2", "10.0.9.1"],
  ] as const)
    expect(queue.put(item, client)).toBeNull();
  expect(queue.take(5)).toEqual(["a1", "c1", "b1", "c2", "a2"]);
  expect(queue.size()).toBe(1);
  expect(queue.take(5)).toEqual(["a3"]);
  expect(queue.take(5)).toEqual([]);
});

test("Paid requests come first and are never refused, and leave a fifth of a round to unpaid ones", () => {
  const queue = createFairQueue<string>(10);
  for (let item = 0; item < 10; item++) queue.put(`free ${item}`, "10.0.0.1");
  for (let item = 0; item < 500; item++) expect(queue.put(`paid ${item}`, null)).toBeNull();
  const round = queue.take(10);
  expect(round.slice(0, 8)).toEqual(Array.from({ length: 8 }, (_, item) => `paid ${item}`));
  expect(round.slice(8)).toEqual(["free 0", "free 1"]);
  for (let rounds = 0; rounds < 4; rounds++) queue.take(10);
  expect(queue.take(10).every((item) => item.startsWith("paid"))).toBe(true);
});

test.each([
  ["one client", Array.from({ length: 300 }, () => "203.0.113.5")],
  ["many addresses of a /24", crowd(300)],
  ["many /64 of a /48", Array.from({ length: 300 }, (_, net) => `2001:db8:1:${net.toString(16)}::/64`)],
])("In a flood by %s, the newest requests are displaced and all other clients are in the next round", (_, flood) => {
  const queue = createFairQueue<string>(200);
  const gone = flood.flatMap((client, item) => queue.put(`flood ${item}`, client) ?? []);
  expect(gone).toHaveLength(100);
  const honest = Array.from({ length: 40 }, (_, place) => `10.1.${place}.1`);
  const displaced = honest.map((client) => queue.put(`honest of ${client}`, client));
  expect(displaced.every((item) => item?.startsWith("flood"))).toBe(true);
  expect(queue.take(50).filter((item) => item.startsWith("honest"))).toHaveLength(40);
});

test("A client in the flooding network waits for that network's turn and not for the whole flood", () => {
  const queue = createFairQueue<string>(100);
  for (let item = 0; item < 300; item++) queue.put(`flood ${item}`, "198.51.100.66");
  expect(queue.put("neighbor", "198.51.100.7")).toMatch(/^flood/);
  for (let place = 0; place < 3; place++) queue.put("elsewhere", `10.1.${place}.1`);
  expect(queue.take(8)).toContain("neighbor");
});

test("A client that has as many requests as others does not displace them", () => {
  const queue = createFairQueue<string>(50);
  for (let place = 0; place < 50; place++) queue.put(`first ${place}`, `10.1.${place}.1`);
  expect(queue.put("one too many", "10.2.0.1")).toBe("one too many");
  expect(queue.take(100)).toHaveLength(50);
});

test("No request is lost or returned twice, and only the network with the most requests loses one", async () => {
  const asker = fc.oneof(
    fc.constant(null),
    fc.constantFrom("10.0.0.1", "10.0.0.2", "10.0.1.1", "10.0.2.1", "2001:db8:1:2::/64", "2001:db8:1:3::/64"),
  );
  const move = fc.oneof({ arbitrary: asker, weight: 4 }, { arbitrary: fc.integer({ min: 0, max: 6 }), weight: 1 });
  fc.assert(
    fc.property(fc.array(move, { maxLength: 120 }), fc.integer({ min: 1, max: 12 }), (moves, most) => {
      const queue = createFairQueue<number>(most);
      const waiting = new Map<number, string>();
      const of = (network: string) => [...waiting.values()].filter((one) => networkOf(one) === network).length;
      let item = 0;
      for (const one of moves) {
        if (typeof one === "number") {
          for (const taken of queue.take(one)) expect(waiting.delete(taken)).toBe(true);
        } else {
          waiting.set(++item, one ?? OURS);
          const gone = queue.put(item, one);
          if (gone === null) continue;
          const by = waiting.get(gone) ?? "none";
          expect(by).not.toBe(OURS);
          for (const other of waiting.values())
            if (other !== OURS) expect(of(networkOf(by))).toBeGreaterThanOrEqual(of(networkOf(other)));
          waiting.delete(gone);
        }
        expect(queue.size()).toBe(waiting.size);
        expect([...waiting.values()].filter((one) => one !== OURS).length).toBeLessThanOrEqual(most);
      }
    }),
    { numRuns: 2_000 },
  );
});
