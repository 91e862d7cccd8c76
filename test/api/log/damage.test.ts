import { describe, expect, test } from "vitest";
import type { KnownHead } from "../../../api/log/trust.ts";
import { connect } from "../../../api/platform/db/connection.ts";
import { withClient } from "../../../scripts/embedded/postgres.ts";
import { forFile } from "../../support/for-file.ts";
import {
  CHECKPOINTS_AGE,
  certificateInsert,
  copyOf,
  endConnections,
  logOn,
  logStage,
} from "../../support/log/stage.ts";
import { freshDatabase } from "../../support/service/database.ts";

/** A change that needs the table's protection to be removed first. */
const unprotected = (table: string, statement: string) =>
  `ALTER TABLE ${table} DISABLE TRIGGER USER; ${statement}; ALTER TABLE ${table} ENABLE TRIGGER USER`;

describe("damaged log under a running process", () => {
  test("A log that has lost its end on the same server is not continued", async () => {
    const at = await logStage();
    for (const size of [3, 6]) {
      await at.add(3);
      expect([await at.integrate(), (await at.log.store.newest(1))?.size]).toEqual([3, size]);
    }
    await at.owner.query(unprotected("log_checkpoint", "DELETE FROM log_checkpoint WHERE size = 6"));
    await at.owner.query(unprotected("log_entry", "DELETE FROM log_entry WHERE idx >= 3"));
    await at.owner.query(unprotected("log_tile", "UPDATE log_tile SET hashes = substr(hashes, 1, 96)"));
    await at.add(1);
    expect([await at.integrate(), await at.integrate()]).toEqual([0, 0]);
    expect(at.log.state()).toMatchObject({
      state: "refused",
      problem: expect.stringMatching(/database has 3 entries, and this process knows 6/),
    });
  });

  test("A log whose tiles do not match its checkpoint's root is not continued", async () => {
    const at = await logStage();
    await at.add(3);
    expect(await at.integrate()).toBe(3);
    const other = "UPDATE log_tile SET hashes = set_byte(hashes, 70, 255 - get_byte(hashes, 70))";
    await at.owner.query(unprotected("log_tile", other));
    await at.add(1);
    await expect(at.integrate()).rejects.toThrow(/root of the log's tiles differs from its checkpoint of 3 entries/);
    expect((await at.log.store.newest(1))?.size).toBe(3);
  });

  test("A changed server is checked against outside sources, even if everything that the process has seen is there", async () => {
    const database = await freshDatabase();
    const pool = await forFile(connect(database.apiUrl));
    const heads: KnownHead[] = [];
    const log = await logOn(pool, { heads: { sources: 1, ask: async () => ({ heads, silent: [] }) } });
    const sell = (url: string, digits: string) =>
      withClient(url, async (owner) => {
        for (const digit of digits) await owner.query(certificateInsert(`${"0".repeat(15)}${digit}`));
        await owner.query(CHECKPOINTS_AGE);
      });
    await sell(database.ownerUrl, "12345");
    expect(await log.integrate()).toBe(5);
    await endConnections(pool);
    const backup = await copyOf(database);
    // Other processes continued, and a witness has seen their checkpoint.
    heads.push({ size: 9, root: Buffer.alloc(32), source: "a witness", at: new Date(0) });
    Object.assign(pool.options, { connectionString: backup.apiUrl });
    await endConnections(pool);
    await sell(backup.ownerUrl, "6");
    expect([await log.integrate(), await log.integrate()]).toEqual([0, 0]);
    expect(log.state()).toMatchObject({
      state: "refused",
      problem: expect.stringMatching(/database has 5 entries, and a witness knows 9/),
    });
  });
});
