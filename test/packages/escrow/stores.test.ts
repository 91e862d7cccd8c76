import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";
import { describe, expect, test } from "vitest";
import {
  type DeliveryStore,
  type KeptDelivery,
  type KeyValue,
  keyValueStore,
  memoryStore,
  POSTGRES_TABLE,
  postgresStore,
} from "../../../packages/escrow/src/index.ts";
import { eventually } from "../../support/eventually.ts";
import { forFile } from "../../support/for-file.ts";
import { freshDatabase } from "../../support/service/database.ts";

const { ownerUrl } = await freshDatabase();
const pool = await forFile(new pg.Pool({ connectionString: ownerUrl, max: 8 }));
await pool.query(POSTGRES_TABLE);

/** A key-value store with expiry, like Redis. */
function keyValue(): KeyValue {
  const values = new Map<string, { readonly value: string; readonly until: number }>();
  const read = (key: string) => {
    const found = values.get(key);
    return found !== undefined && performance.now() < found.until ? found.value : null;
  };
  return {
    get: async (key) => read(key),
    async setIfAbsent(key, value, forMs) {
      if (read(key) !== null) return false;
      values.set(key, { value, until: performance.now() + forMs });
      return true;
    },
    async expire(key, forMs) {
      const value = read(key);
      if (value !== null) values.set(key, { value, until: performance.now() + forMs });
    },
  };
}

const STORES: readonly (readonly [string, DeliveryStore, DeliveryStore])[] = [
  (() => {
    const store = memoryStore();
    return ["memory", store, store] as const;
  })(),
  ["PostgreSQL", postgresStore(pool), postgresStore(pool)],
  (() => {
    const shared = keyValue();
    return ["a store like Redis", keyValueStore(shared), keyValueStore(shared)] as const;
  })(),
];

let made = 0;
const newId = () => `0x${(++made).toString(16).padStart(64, "0")}` as const;
const LONG = 600_000;
const BYTES = Uint8Array.from({ length: 1000 }, (_, index) => index % 256);
const delivery = (body: Uint8Array = BYTES): KeptDelivery => ({
  status: 201,
  headers: [
    ["content-type", "image/png"],
    ["set-cookie", "a=1"],
    ["set-cookie", "b=2"],
  ],
  body,
  resource: "POST /haiku",
  transaction: `0x${"ab".repeat(32)}`,
  decision: "pending",
});

describe.each(STORES)("%s", (_, store, other) => {
  test("One of twenty simultaneous claims in two processes gets the lease", async () => {
    const id = newId();
    const claims = await Promise.all(
      Array.from({ length: 20 }, (__, at) => (at % 2 === 0 ? store : other).claim(id, "POST /haiku", LONG)),
    );
    expect(claims.filter(({ lease }) => lease !== null)).toHaveLength(1);
    expect(new Set(claims.map(({ resource }) => resource))).toEqual(new Set(["POST /haiku"]));
  });

  test("One of two simultaneous resources gets the payment, and keeps it after its lease", async () => {
    const id = newId();
    const claims = await Promise.all([store.claim(id, "GET /a", 1), other.claim(id, "GET /b", 1)]);
    const [bound] = claims.filter(({ lease }) => lease !== null).map(({ resource }) => resource);
    expect(claims.map(({ resource }) => resource)).toEqual([bound, bound]);
    const loser = bound === "GET /a" ? "GET /b" : "GET /a";
    await sleep(5);
    expect(await other.claim(id, loser, LONG)).toEqual({ resource: bound, lease: null });
  });

  test("An expired lease can be taken by another process and not extended by the first", async () => {
    const id = newId();
    const { lease: first } = await store.claim(id, "POST /haiku", 1);
    await eventually(async () => (await other.claim(id, "POST /haiku", LONG)).lease !== null, true);
    expect(await store.extend(id, first ?? "", LONG)).toBe(false);
    expect((await store.claim(id, "POST /haiku", LONG)).lease).toBeNull();
  });

  test("An extended lease lasts for the time of its extension", async () => {
    const id = newId();
    const { lease } = await store.claim(id, "POST /haiku", LONG);
    expect(await other.extend(id, lease ?? "", 1)).toBe(true);
    await eventually(async () => (await other.claim(id, "POST /haiku", LONG)).lease !== null, true);
    expect(await store.extend(newId(), lease ?? "", LONG)).toBe(false);
  });

  test("The first delivery is kept byte for byte, and its decision is recorded", async () => {
    const id = newId();
    expect(await store.get(id)).toBeNull();
    await store.decide(id, "release");
    expect(await store.get(id)).toBeNull();
    await store.claim(id, "POST /haiku", LONG);
    expect(await store.keep(id, delivery())).toEqual(delivery());
    expect(await other.keep(id, delivery(new Uint8Array(3)))).toEqual(delivery());
    await other.decide(id, "release");
    expect(await store.get(id)).toEqual({ ...delivery(), decision: "release" });
  });

  test("A delivery can be kept without a claim, as by a process whose expired lease was forgotten", async () => {
    const id = newId();
    expect(await store.keep(id, delivery(new Uint8Array(0)))).toEqual(delivery(new Uint8Array(0)));
    expect((await other.claim(id, "GET /b", LONG)).resource).toBe("POST /haiku");
  });
});
