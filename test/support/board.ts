import pg from "pg";
import { afterAll, beforeAll, beforeEach } from "vitest";
import { type Certificate, validUntil } from "../../api/certificates/certificate.ts";
import { createCertificateStore } from "../../api/certificates/store.ts";
import { bytes } from "../../api/platform/db/connection.ts";
import { NETWORKS } from "../../api/platform/networks.ts";
import type { Address } from "../../api/platform/wallet.ts";
import { FAILING, PASSING } from "./certificates/samples.ts";
import { startTestChain, type TestChain } from "./chain/chain.ts";
import { type Answer, send } from "./payments/requests.ts";
import type { TestDatabase } from "./service/database.ts";
import { startService, type TestService } from "./service/service.ts";

/** A certificate in a test's short form. Ids and nonces are derived from `ordinal`. */
export interface Seed {
  /** The wallet's number (`seedWallet`) or address. */
  readonly wallet: number | Address;
  readonly issuedAt: Date;
  /** Default basic. */
  readonly product?: Certificate["product"];
  /** Default pass. */
  readonly result?: Certificate["result"];
  /** Default a sample's. */
  readonly detected?: Certificate["detected"];
  /** Whether it depends on a second payment. Default false. */
  readonly also?: boolean;
}

/** Wallet 7 is 0x…07. */
export const seedWallet = (number: number): Address => `0x${number.toString(16).padStart(40, "0")}`;

/** Stores certificates the way the service does, without a payment. */
export function boardSeeder(database: TestDatabase) {
  const pool = new pg.Pool({ connectionString: database.apiUrl });
  const store = createCertificateStore(pool);
  const { id: network, chainId, usdc } = NETWORKS["eip155:8453"];
  const asset = usdc.address;
  const nonceOf = (id: string): `0x${string}` => `0x${id.padStart(64, "0")}`;
  const alsoOf = (id: string) => nonceOf(`a150${id}`);
  const reverse = (id: string, nonce: string) =>
    pool.query(
      `INSERT INTO settlement_mark (chain, asset, payer, nonce, kind)
       SELECT $2, $3, wallet, $4, 'reversed' FROM certificate WHERE id = $1`,
      [id, chainId, bytes(asset), bytes(nonce)],
    );
  let ordinal = 0;
  return {
    /** Returns the certificates' ids, in the given order. */
    async add(...seeds: readonly Seed[]): Promise<readonly string[]> {
      const ids: string[] = [];
      for (const { wallet, issuedAt, product = "basic", result = "pass", also = false, ...seed } of seeds) {
        const id = (++ordinal).toString(16).padStart(16, "0");
        const certificate: Certificate = {
          ...(result === "pass" ? PASSING : FAILING),
          id,
          product,
          wallet: typeof wallet === "number" ? seedWallet(wallet) : wallet,
          issuedAt,
          validUntil: validUntil(issuedAt),
          ...seed,
        };
        const { text, values } = store.adding(certificate, {
          payment: { network, asset, payer: certificate.wallet, nonce: nonceOf(id) },
          also: also ? alsoOf(id) : null,
        });
        await pool.query(text, [...values]);
        ids.push(id);
      }
      return ids;
    },
    /** Marks the settlement behind a certificate as removed from the chain. */
    reverse: (id: string) => reverse(id, nonceOf(id)),
    /** Marks its second settlement as removed. */
    reverseAlso: (id: string) => reverse(id, alsoOf(id)),
    stop: () => pool.end(),
  };
}

export type BoardSeeder = ReturnType<typeof boardSeeder>;

const DAY_MS = 86_400_000;
export const NOON = new Date("2026-11-21T12:00:00.000Z");

/** This many days before `NOON`. */
export const ago = (days: number): Date => new Date(NOON.getTime() - days * DAY_MS);

export interface ListedAgent {
  readonly wallet: string;
  readonly capabilities: readonly string[];
  readonly product: string;
  readonly cert_url: string;
}

/** A separate service for each test, with an empty database and a clock that the test sets. */
export interface BoardScene {
  chain: TestChain;
  service: TestService;
  seeder: BoardSeeder;
  /** Starts as `NOON`. Null is the real time. */
  clock: Date | null;
  readonly get: (path: string, headers?: Record<string, string>) => Promise<Answer>;
  readonly board: (query?: string) => Promise<readonly ListedAgent[]>;
  /** The numbers of the seeded wallets on the first page. */
  readonly wallets: (query?: string) => Promise<readonly number[]>;
}

export function boardScene(): BoardScene {
  const get = (path: string, headers: Record<string, string> = {}) =>
    send(path.startsWith("http") ? path : `${scene.service.url}${path}`, { headers });
  const board = async (query = "") => (await get(`/board${query}`)).body.agents as readonly ListedAgent[];
  const wallets = async (query = "") => (await board(query)).map(({ wallet }) => Number(wallet));
  const scene = { clock: NOON, get, board, wallets } as unknown as BoardScene;
  beforeAll(async () => {
    scene.chain = await startTestChain();
  });
  afterAll(() => scene.chain?.stop());
  beforeEach(async () => {
    scene.clock = NOON;
    const now = () => scene.clock ?? new Date();
    scene.service = await startService({ chain: scene.chain, jobs: false, now });
    scene.seeder = boardSeeder(scene.service.database);
    return async () => {
      await scene.seeder.stop();
      await scene.service.stop();
    };
  });
  return scene;
}
