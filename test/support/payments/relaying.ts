import type pg from "pg";
import { createPublicClient, type Hex, http, keccak256, stringToHex } from "viem";
import { generatePrivateKey } from "viem/accounts";
import { OUTCOMES } from "../../../api/escrow/index.ts";
import { type Batching, type BatchPolicy, createBatching } from "../../../api/payments/settle/batching-chain.ts";
import type { Payment } from "../../../api/payments/settle/facilitator-chain.ts";
import { transfersTo } from "../../../api/payments/settle/transfer.ts";
import { createAccount } from "../../../api/platform/chain/accounts.ts";
import { authorizationDigest } from "../../../api/platform/chain/authorization.ts";
import { CALLS_IN_A_BATCH, createBatchFetch, rpcFetch } from "../../../api/platform/chain/rpc.ts";
import { connect } from "../../../api/platform/db/connection.ts";
import { createSeal } from "../../../api/platform/db/seal.ts";
import type { MinedTransaction, SentBatch } from "../../../api/platform/metrics/meter.ts";
import { SHARES } from "../../../api/platform/relayer/places.ts";
import { createRelayer, type Relayer } from "../../../api/platform/relayer/relayer.ts";
import type { RelayerParts } from "../../../api/platform/relayer/sender.ts";
import { freshDatabase } from "../service/database.ts";
import { PAY_TO } from "../service/environment.ts";
import { BASE, type Signed } from "./signing.ts";

/** A relayer with its own key. The test controls its passes and its time. */
export interface Relaying {
  readonly relayer: Relayer;
  readonly pool: pg.Pool;
  /** The counted events of all processes. */
  readonly counted: { readonly mined: readonly MinedTransaction[]; readonly replaced: number };
  /** Everything stored, by nonce. */
  readonly rows: () => Promise<readonly Relayed[]>;
  /** Another process with the same key that has not read anything yet. */
  readonly another: () => Relayer;
  /** Ages everything by these seconds and runs one pass of the upkeep. */
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

const SEAL = createSeal(Buffer.alloc(32, 3));
const AGE = "UPDATE relay SET tended_at = tended_at - make_interval(secs => $1) WHERE state = 'sent'";

type Limits = Pick<RelayerParts, "shares" | "mostLostWei">;

export async function startRelaying(rpcUrl: string, changed: Partial<Limits> = {}): Promise<Relaying> {
  const limits: Limits = { shares: SHARES.facilitator, mostLostWei: null, ...changed };
  const database = await freshDatabase();
  const pool = connect(database.apiUrl);
  const log = { warn: () => undefined };
  const account = createAccount(generatePrivateKey());
  const mined: MinedTransaction[] = [];
  const counted = { mined, replaced: 0 };
  const counter = {
    relayed: (one: MinedTransaction) => void mined.push(one),
    replaced: () => void counted.replaced++,
    turnedAway: () => undefined,
  };
  const another = () => {
    const batch = { wait: 0, batchSize: CALLS_IN_A_BATCH };
    const transport = http(rpcUrl, { batch, retryCount: 0, fetchFn: createBatchFetch(rpcFetch) });
    const client = createPublicClient({ transport, cacheTime: 0 });
    const parts = { pool, client, chainId: BASE.chainId, account, seal: SEAL, log, counter, cargo: OUTCOMES };
    return createRelayer({ ...parts, ...limits });
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

interface Plan {
  readonly rpcUrl: string;
  readonly relayer: Relayer;
  readonly policy?: Partial<BatchPolicy>;
}

/** The parts with which a process settles its payments. */
export interface Settling {
  readonly batching: Batching;
  /** The reported batches, and whether batches are possible. */
  readonly sent: readonly SentBatch[];
  readonly isOn: readonly boolean[];
}

/** Sends a full batch immediately, and a partial one only when no other is pending. */
export function startBatching({ rpcUrl, relayer, policy }: Plan): Settling {
  const sent: SentBatch[] = [];
  const isOn: boolean[] = [];
  const batching = createBatching({
    client: createPublicClient({ transport: http(rpcUrl, { retryCount: 0 }), cacheTime: 0 }),
    network: BASE,
    relayer,
    sharing: transfersTo({ usdc: BASE.usdc.address, payTo: PAY_TO }),
    policy: { most: 50, waitMs: 60_000, ...policy },
    log: { warn: () => undefined },
    meter: {
      batch: (_, batch) => void sent.push(batch),
      turnedAway: () => undefined,
      batching: (_, on) => void isOn.push(on),
    },
  });
  return { batching, sent, isOn };
}

/** A payment as the gate submits it. */
export const paymentOf = (transfer: Signed): Payment => ({
  transfer,
  purpose: authorizationDigest(transfer.authorization, BASE),
});
