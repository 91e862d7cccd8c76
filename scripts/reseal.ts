import pg from "pg";
import { KEY, keyValues, sealContext } from "../api/payments/journal/row-store.ts";
import { parseConfig } from "../api/platform/config/config.ts";
import { hex } from "../api/platform/db/connection.ts";
import { createSeal, type Seal } from "../api/platform/db/seal.ts";
import { networkOfChain } from "../api/platform/networks.ts";
import { sealContext as relayContext } from "../api/platform/relayer/store.ts";
import { SettingError } from "./embedded/settings.ts";

/*
 * Reseals values that were sealed with one of RETIRED_SEALING_KEYS, so that the retired key can be removed. Configured like
 * the API, which may be running.
 */

interface Row {
  readonly sealed: Buffer;
}

interface Payment extends Row {
  readonly chain: number;
  readonly asset: Buffer;
  readonly payer: Buffer;
  readonly nonce: Buffer;
}

interface Relayed extends Row {
  readonly id: string;
  readonly chain: number;
  readonly sender: Buffer;
  readonly nonce: string;
}

/** The counts of sealed values. Values that no key opens stay unchanged. */
interface Resealed {
  renewed: number;
  unreadable: number;
}

const PAYMENTS =
  "SELECT chain, asset, payer, nonce, encrypted_signature AS sealed FROM payment WHERE encrypted_signature IS NOT NULL";
const RENEW_PAYMENT = `UPDATE payment SET encrypted_signature = $5 WHERE ${KEY} AND encrypted_signature = $6`;
const keyOf = ({ chain, asset, payer, nonce }: Omit<Payment, "sealed">) => ({
  network: networkOfChain(chain),
  asset: hex(asset),
  payer: hex(payer),
  nonce: hex(nonce),
});

/** Final transactions are not sent again, so their bytes need no key. */
const RELAYED = "SELECT id, chain, sender, nonce, raw AS sealed FROM relay WHERE state IN ('sent', 'mined')";
const RENEW_RELAYED = "UPDATE relay SET raw = $2 WHERE id = $1 AND raw = $3";

export async function reseal(db: pg.ClientBase, seal: Seal): Promise<Resealed> {
  const done: Resealed = { renewed: 0, unreadable: 0 };
  const renew = async (sealed: Buffer, context: string, store: (by: Buffer) => [string, unknown[]]): Promise<void> => {
    let by: Buffer | null;
    try {
      by = seal.renew(sealed, context);
    } catch {
      done.unreadable++;
      return;
    }
    // If the row has changed meanwhile, a running process has sealed it with the current key, or removed the value.
    if (by !== null) done.renewed += (await db.query(...store(by))).rowCount ?? 0;
  };
  for (const { sealed, ...row } of (await db.query<Payment>(PAYMENTS)).rows) {
    const key = keyOf(row);
    await renew(sealed, sealContext(key), (by) => [RENEW_PAYMENT, [...keyValues(key), by, sealed]]);
  }
  for (const { sealed, id, chain, sender, nonce } of (await db.query<Relayed>(RELAYED)).rows) {
    const context = relayContext({ chainId: chain, address: hex(sender) }, nonce);
    await renew(sealed, context, (by) => [RENEW_RELAYED, [id, by, sealed]]);
  }
  return done;
}

async function main(): Promise<void> {
  const config = parseConfig(process.env);
  if ("problem" in config) throw new SettingError(config.problem);
  const db = new pg.Client({ connectionString: config.databaseUrl });
  await db.connect();
  try {
    const { renewed, unreadable } = await reseal(db, createSeal(config.sealingKey, config.retiredSealingKeys));
    console.log(`${renewed} sealed values now use SEALING_KEY.`);
    if (unreadable > 0)
      throw new SettingError(
        `${unreadable} sealed values are unchanged, because SEALING_KEY and RETIRED_SEALING_KEYS do not open them.`,
      );
  } finally {
    await db.end();
  }
}

if (import.meta.main)
  try {
    await main();
  } catch (error) {
    console.error(error instanceof SettingError ? error.message : `The command failed: ${(error as Error).message}`);
    process.exitCode = 1;
  }
