import { afterAll, beforeAll, beforeEach } from "vitest";
import { startTestChain, type TestChain } from "../chain/chain.ts";
import { type Answer, send } from "../payments/requests.ts";
import { startService, type TestService } from "../service/service.ts";
import { type BoardSeeder, boardSeeder } from "./seed.ts";

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

/** A separate service for each test, with an empty database, whose clock the test sets. */
export interface BoardScene {
  chain: TestChain;
  service: TestService;
  seeder: BoardSeeder;
  /** `NOON` at first; null is the real time. */
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
