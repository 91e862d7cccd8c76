import { text } from "node:stream/consumers";
import { privateKeyToAccount } from "viem/accounts";
import { expect } from "vitest";
import { logOrigin } from "../../../api/log/log-paths.ts";
import { createLogStore } from "../../../api/log/store.ts";
import { connect } from "../../../api/platform/db/connection.ts";
import { signingKey } from "../../../api/platform/signing/keys.ts";
import { LOG_ANCHOR } from "../../../contracts/log-anchor.ts";
import { parseCheckpoint } from "../../../packages/verifier/src/tlog/checkpoint.ts";
import { verifyNote } from "../../../packages/verifier/src/tlog/note.ts";
import { NOTE_TYPE, verifierKey } from "../../../packages/verifier/src/tlog/verifier-key.ts";
import { anvilClient } from "../../../scripts/embedded/anvil.ts";
import { artifactOf } from "../chain/contracts.ts";
import { startHoldingNode } from "../chain/nodes.ts";
import { eventually } from "../eventually.ts";
import { forFile } from "../for-file.ts";
import { serveHttp } from "../http-server.ts";
import { type ApiProcess, startApiStage } from "../service/api-process.ts";
import { ARBITER_KEY } from "../service/environment.ts";
import { auditLog } from "./stage.ts";
import { localWitness } from "./witness.ts";

/** The log's origin is derived from this URL, so every process continues the same log on any port. */
const BASE_URL = "http://localhost:4021";
const LOG_KEY = Buffer.alloc(32, 21);

/** API processes with a witness and anchors, and the invariants of their log after any kill. */
export async function killStage() {
  const stage = await forFile(startApiStage());
  const { owner, database, chain } = stage;
  const store = createLogStore(await forFile(connect(database.ownerUrl)));
  const node = await forFile(startHoldingNode(chain));
  const { publicJwk } = await signingKey(LOG_KEY);
  const verifier = verifierKey(logOrigin(BASE_URL, 1), NOTE_TYPE.ed25519, Buffer.from(publicJwk.x, "base64url"));
  const witness = await losingWitness(verifier);
  const shop = await forFile(serveHttp((_, response) => void response.end("delivered")));
  const { deployedBytecode: bytecode } = artifactOf("LogAnchor");
  await anvilClient(chain.rpcUrl, chain.network).setCode({ address: LOG_ANCHOR.address, bytecode });
  await chain.setBalance(privateKeyToAccount(ARBITER_KEY).address, 10n ** 18n);
  const env = {
    BASE_URL,
    LOG_KEY: LOG_KEY.toString("base64url"),
    LOG_WITNESSES: `${witness.vkey} ${witness.url}`,
    // The arbiter's account anchors only if it is in use.
    ERC8004_FEEDBACK: "on",
    ARBITER_ALLOWED_ORIGINS: shop.url,
  };
  const count = async (table: string): Promise<number> =>
    Number((await owner.query(`SELECT count(*) FROM ${table}`)).rows[0].count);
  const nothingWaits = () => eventually(() => count("log_pending"), 0);
  const served = async (by: ApiProcess | undefined) => (await fetch(`${by?.url}/log/checkpoint`)).text();
  const sizeOf = (note: string) => parseCheckpoint(note.slice(0, note.indexOf("\n\n") + 1)).size;
  const sessions = async () => (await owner.query(SESSIONS, [new URL(database.apiUrl).username])).rows[0].count;

  return {
    stage,
    node,
    witness,
    shop,
    start: () => stage.start(node, env),
    log: {
      nothingWaits,
      served,
      /** Waits until the records announced at the start are in the log. */
      isStarted: async () => {
        await eventually(async () => (await count("log_entry")) > 0, true);
        await nothingWaits();
      },
      written: async () => ({
        entries: await count("log_entry"),
        checkpoints: await count("log_checkpoint"),
        waiting: await count("log_pending"),
        leaves: Number((await owner.query(LEAVES)).rows[0].leaves),
      }),
      /** Waits until the server has noticed that the client is gone, and has finished or undone its statements. */
      noSessions: () => eventually(sessions, "0"),
      dayPasses: () => owner.query(DAY_PASSES),
      /**
       * Expects that nothing is pending, that the log has every sold record by type and id exactly once, that every
       * checkpoint is signed, has the root of its entries, and continues the previous one, and that the newest is
       * served with its cosignature.
       */
      async isWhole(by: ApiProcess | undefined, sold: readonly string[]): Promise<void> {
        await nothingWaits();
        expect(await auditLog({ owner, store, verifier })).toEqual([]);
        const names = async (text: string) =>
          (await owner.query<{ name: string }>(text)).rows.map(({ name }) => name).toSorted();
        expect(await names(STORED)).toEqual(sold.toSorted());
        expect(await names(LOGGED)).toEqual(sold.toSorted());
        const entries = await count("log_entry");
        const seen = async () => {
          const note = await served(by);
          const { signatures } = await verifyNote(note, [verifier, witness.key]);
          return [sizeOf(note), signatures.length];
        };
        await eventually(seen, [entries, 2]);
      },
      /**
       * The faults in checkpoints that were served in this order: a checkpoint that the log does not have, or one of a
       * smaller tree.
       */
      async faultsIn(notes: readonly string[]): Promise<readonly string[]> {
        const faults: string[] = [];
        let before = 0;
        for (const note of notes) {
          const size = sizeOf(note);
          const stored = await store.checkpointAt(1, size);
          if (stored === null || !note.startsWith(stored.note)) faults.push(`the log has no checkpoint like ${note}`);
          if (size < before) faults.push(`${size} entries were served after ${before}`);
          before = size;
        }
        return notes.length === 0 ? ["nothing was served"] : faults;
      },
    },
  };
}

const STORED = "SELECT 'certificate ' || id AS name FROM certificate UNION ALL SELECT 'verdict ' || id FROM verdict";
const LOGGED = "SELECT type || ' ' || ref AS name FROM log_entry WHERE type IN ('certificate', 'verdict')";
const SESSIONS = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND usename = $1";
const LEAVES = "SELECT coalesce(sum(length(hashes)), 0) / 32 AS leaves FROM log_tile WHERE level = 0";
const DAY_PASSES = `ALTER TABLE log DISABLE TRIGGER permanent;
  UPDATE log SET started_at = started_at - interval '1 day';
  ALTER TABLE log ENABLE ALWAYS TRIGGER permanent`;

interface Losing {
  readonly after: number;
  readonly cosigned: (head: { size: number }) => void;
  readonly released: Promise<void>;
}

/** A witness that cosigns, but whose responses a test can drop. */
async function losingWitness(log: Parameters<typeof localWitness>[0]) {
  const { witness } = await localWitness(log);
  let losing: Losing | null = null;
  const { url } = await forFile(
    serveHttp(async (request, response) => {
      const body = request.method === "POST" ? await text(request) : null;
      const answer = await fetch(`${witness.submission}${request.url}`, { method: request.method ?? "GET", body });
      const answered = await answer.text();
      const size = Number(body?.slice(body.indexOf("\n\n") + 2).split("\n")[1]);
      if (losing !== null && answer.status === 200 && size > losing.after) {
        const { cosigned, released } = losing;
        cosigned({ size });
        await released;
      }
      const type = answer.headers.get("content-type") ?? "text/plain";
      if (!response.destroyed) response.writeHead(answer.status, { "content-type": type }).end(answered);
    }),
  );
  return {
    url,
    key: witness.key,
    vkey: witness.key.vkey,
    /** Delays its responses about larger trees, including retries, until they are released. */
    loseNextAfter(after: number) {
      const cosigned = Promise.withResolvers<{ size: number }>();
      const released = Promise.withResolvers<void>();
      losing = { after, cosigned: cosigned.resolve, released: released.promise };
      const release = () => {
        losing = null;
        released.resolve();
      };
      return { cosigned: cosigned.promise, release };
    },
  };
}
