import { generateKeyPairSync, sign } from "node:crypto";
import { request } from "node:http";
import { createCertificateStore } from "../../../api/certificates/store.ts";
import { createLogWriter } from "../../../api/log/write-store.ts";
import { connect } from "../../../api/platform/db/connection.ts";
import { NETWORKS } from "../../../api/platform/networks.ts";
import { formatCheckpoint } from "../../../packages/verifier/src/tlog/checkpoint.ts";
import type { EntryType } from "../../../packages/verifier/src/tlog/entry-types.ts";
import { type Growth, growTiles } from "../../../packages/verifier/src/tlog/grow.ts";
import { leafHash } from "../../../packages/verifier/src/tlog/hash.ts";
import { signNote } from "../../../packages/verifier/src/tlog/note.ts";
import { NOTE_TYPE, verifierKey } from "../../../packages/verifier/src/tlog/verifier-key.ts";
import { PASSING } from "../certificates/samples.ts";
import { startTestChain } from "../chain/chain.ts";
import { forFile } from "../for-file.ts";
import type { TestDatabase } from "../service/database.ts";
import { startService } from "../service/service.ts";

export interface StoredEntry {
  readonly type: EntryType;
  readonly ref: string;
  readonly entry: Buffer;
}

/** A log in the service's tables, with the test's own key. */
export async function storeLog(database: TestDatabase, origin: string, generation = 1) {
  const { publicKey, privateKey } = generateKeyPairSync("ed25519");
  const bytes = Buffer.from(publicKey.export({ format: "jwk" }).x ?? "", "base64url");
  const key = verifierKey(origin, NOTE_TYPE.ed25519, bytes);
  const writer = createLogWriter(await forFile(connect(database.apiUrl)), {});
  await writer.begin({ generation, origin, vkey: key.vkey });
  let tree: Pick<Growth, "size" | "edge"> = { size: 0, edge: new Map() };
  let tilesToStore: Growth["tiles"] = [];
  return {
    origin,
    vkey: key.vkey,
    /** Grows the tree by leaves whose entries are not stored, for tests of large trees. */
    pad(leaves: number): void {
      const grown = growTiles({ ...tree, leaves: Array.from({ length: leaves }, () => NO_ENTRY) });
      tilesToStore = grown.tiles;
      tree = grown;
    },
    /** Appends these entries with their tiles, and a checkpoint of the resulting tree. */
    async grow(added: readonly StoredEntry[]): Promise<void> {
      const { size } = tree;
      const grown = growTiles({ ...tree, leaves: added.map(({ entry }) => leafHash(entry)) });
      const text = formatCheckpoint({ origin, size: grown.size, root: grown.root });
      const note = await signNote(text, { key, sign: (message) => sign(null, message, privateKey) });
      const done = await writer.inTurn(generation, async (turn) => {
        const entries = added.map((one, place) => ({ ...one, index: size + place }));
        await turn.append(entries, []);
        await turn.publish({ ...grown, tiles: newest([...tilesToStore, ...grown.tiles]) }, note);
        return true;
      });
      if (done !== true) throw new Error("another process has the log's turn");
      tilesToStore = [];
      tree = grown;
    },
  };
}

const NO_ENTRY = leafHash(new Uint8Array());

/** Each tile once, in its last version. */
const newest = (tiles: Growth["tiles"]): Growth["tiles"] => [
  ...new Map(tiles.map((tile) => [`${tile.level} ${tile.n}`, tile])).values(),
];

export const LOGGED = "00000000000000a1";
export const REVERSED = "00000000000000a2";
export const WAITING = "00000000000000a3";
export const VERDICT = "0".repeat(31).concat("b");
export const PAYMENT = `0x${"0c".repeat(32)}`;
export const KEY = "kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k#2";

const entry = (type: EntryType, ref: string): StoredEntry => ({
  type,
  ref,
  entry: Buffer.from(JSON.stringify({ document: { of: ref }, id: ref, type, version: 1 })),
});

export const ENTRIES: readonly StoredEntry[] = [
  entry("policy", "1"),
  entry("certificate", LOGGED),
  entry("certificate", REVERSED),
  entry("verdict", VERDICT),
  entry("evaluation", PAYMENT),
  entry("contest_answer", PAYMENT),
  entry("reversal", REVERSED),
  ...Array.from({ length: 260 }, (_, index) => entry("score_version", `${index}`)),
  entry("signing_key", KEY),
];
/** The index of the reversal of `REVERSED`. */
export const REVERSAL = 6;

/** A service whose log has `ENTRIES`, and three certificates, one of which waits for its place. */
export async function proofScene() {
  const chain = await forFile(startTestChain());
  const service = await forFile(startService({ chain, jobs: false }));
  const pool = await forFile(connect(service.database.apiUrl));
  const certificates = createCertificateStore(pool);
  const asset = NETWORKS["eip155:8453"].usdc.address;
  for (const [ordinal, id] of [LOGGED, REVERSED, WAITING].entries()) {
    const payment = {
      network: "eip155:8453",
      asset,
      payer: PASSING.wallet,
      nonce: `0x${`${ordinal}`.repeat(64)}`,
    } as const;
    const { text, values } = certificates.adding({ ...PASSING, id }, { payment, also: null });
    await pool.query(text, [...values]);
  }
  const log = await storeLog(service.database, "trust.test/log");
  await log.grow(ENTRIES);
  return { service, pool, log };
}

const FIRST = 300;
const LAST = 256 * 1066;
const SIZE = LAST + 256 + 12;

const largeEntry = (index: number): StoredEntry => ({
  type: "certificate",
  ref: `c${index}`,
  // The sizes differ, so that the length prefix uses both of its bytes.
  entry: Buffer.from(`entry ${index} ${"x".repeat((index * 37) % 700)}`),
});

/**
 * A service with a log of which only the first and the last entries are stored, and raw requests that no client would
 * send.
 */
export async function staticScene() {
  const chain = await forFile(startTestChain());
  const service = await forFile(startService({ chain, jobs: false }));
  const log = await storeLog(service.database, "trust.test/log");
  await log.grow(Array.from({ length: FIRST }, (_, index) => largeEntry(index)));
  const before = await (await fetch(`${service.url}/log/checkpoint`)).text();
  log.pad(LAST - FIRST);
  await log.grow(Array.from({ length: SIZE - LAST }, (_, index) => largeEntry(LAST + index)));
  const { hostname, port } = new URL(service.url);
  return {
    service,
    entry: largeEntry,
    size: { first: FIRST, newest: SIZE },
    /** The checkpoint of the first entries. */
    before,
    get: (path: string, headers: Record<string, string> = {}) => fetch(`${service.url}/log/${path}`, { headers }),
    /** Sends with Node directly, so no client normalizes the path or decodes the body. */
    raw: (path: string, headers: Record<string, string> = {}, method = "GET") =>
      new Promise<{ status: number; headers: NodeJS.Dict<string | string[]>; body: Buffer }>((resolve, reject) => {
        request({ hostname, port, path, headers, method }, (response) => {
          const parts: Buffer[] = [];
          response.on("data", (part: Buffer) => parts.push(part));
          response.on("end", () =>
            resolve({ status: response.statusCode ?? 0, headers: response.headers, body: Buffer.concat(parts) }),
          );
        })
          .on("error", reject)
          .end();
      }),
  };
}
