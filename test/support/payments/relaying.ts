import type pg from "pg";
import { createPublicClient, type Hex, http, keccak256, stringToHex } from "viem";
import { generatePrivateKey } from "viem/accounts";
import { createRelayer, type Relayer } from "../../../api/adapters/chain/relayer/relayer.ts";
import { connect } from "../../../api/adapters/postgres/connection.ts";
import type { MinedTransaction } from "../../../api/operations/meter.ts";
import { freshDatabase } from "../service/database.ts";
import { BASE } from "./signing.ts";

/** A relayer on its own, with a key of its own, whose passes and time the test makes. */
export interface Relaying {
  readonly relayer: Relayer;
  readonly pool: pg.Pool;
  /** What has been counted, in all processes. */
  readonly counted: { readonly mined: readonly MinedTransaction[]; readonly replaced: number };
  /** Everything stored, by nonce. */
  readonly rows: () => Promise<readonly Relayed[]>;
  /** Another process with the same key, which has read nothing yet. */
  readonly another: () => Relayer;
  /** One pass of the upkeep, once everything has become so many seconds older. */
  readonly tendAfter: (seconds: number, by?: Relayer) => Promise<void>;
  readonly stop: () => Promise<void>;
}

export interface Relayed {
  readonly nonce: number;
  readonly state: string;
  readonly hashes: readonly Hex[];
  /** In wei. */
  readonly reserved: bigint;
}

const AGE = `UPDATE relay SET sent_at = sent_at - make_interval(secs => $1), tended_at = tended_at - make_interval(secs => $1)
  WHERE state = 'sent'`;

export async function startRelaying(rpcUrl: string): Promise<Relaying> {
  const database = await freshDatabase();
  const pool = connect(database.apiUrl);
  const log = { warn: () => undefined };
  const privateKey = generatePrivateKey();
  const mined: MinedTransaction[] = [];
  const counted = { mined, replaced: 0 };
  const counter = {
    relayed: (one: MinedTransaction) => void mined.push(one),
    replaced: () => void counted.replaced++,
  };
  const another = () => {
    const client = createPublicClient({ transport: http(rpcUrl, { batch: { wait: 0 }, retryCount: 0 }), cacheTime: 0 });
    return createRelayer({ pool, client, chainId: BASE.chainId, privateKey, log, counter });
  };
  const relayer = another();
  return {
    relayer,
    pool,
    counted,
    another,
    async rows() {
      const { rows } = await pool.query(
        "SELECT nonce, state, hashes, gas * max_fee AS reserved FROM relay ORDER BY nonce, id",
      );
      return rows.map(({ nonce, state, hashes, reserved }) => ({
        nonce: Number(nonce),
        state,
        hashes: hashes.map((hash: Buffer): Hex => `0x${hash.toString("hex")}`),
        reserved: BigInt(reserved),
      }));
    },
    async tendAfter(seconds, by = relayer) {
      await pool.query(AGE, [seconds]);
      await pool.query("UPDATE relay_upkeep SET held_until = '-infinity'");
      await by.tend();
    },
    stop: () => pool.end(),
  };
}

/** Some purpose. */
export const purpose = (name: string): Hex => keccak256(stringToHex(name));
