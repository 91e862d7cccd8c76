import { pino } from "pino";
import { connect } from "../../../api/platform/db/connection.ts";
import { createService } from "../../../api/service.ts";
import { startTestChain, type TestChain } from "../chain/chain.ts";
import { type LocalServer, serveHttp } from "../http-server.ts";
import { startService, type TestService } from "../service/service.ts";
import { openOperator } from "./auth-capture.ts";
import { deployEscrow, type EscrowScene } from "./contract.ts";
import { END_TURNS } from "./outcomes.ts";

export type Custody = "escrow" | "operator";

/** A service whose jobs run when the test says so, both contracts, and a public site that it may fetch from. */
export interface ContestScene {
  readonly chain: TestChain;
  readonly service: TestService;
  readonly at: Readonly<Record<Custody, EscrowScene>>;
  /** What the site answers at a path, with 200; nothing at all at /silent, and 404 elsewhere. */
  readonly pages: Map<string, string>;
  readonly site: LocalServer;
  /** A pass over what is due, in another process of the same installation; every turn has ended. */
  readonly pass: () => Promise<void>;
  /** The time of the chain's head. */
  readonly now: () => Promise<number>;
  /** The next block, and so the head, gets this time. */
  readonly mineAt: (time: number) => Promise<void>;
  readonly stop: () => Promise<void>;
}

export async function startContestScene(): Promise<ContestScene> {
  const chain = await startTestChain();
  const [escrow, operator] = [await deployEscrow(chain), await openOperator(chain)];
  const pages = new Map<string, string>();
  const site = await serveHttp(({ url = "" }, response) => {
    if (url === "/silent") return;
    const page = pages.get(url);
    response.writeHead(page === undefined ? 404 : 200, { "content-type": "text/plain" }).end(page ?? "none");
  });
  const config = { escrowAddresses: [escrow.address, operator.address], arbiterAllowedOrigins: [site.url] };
  const service = await startService({ chain, jobs: false, config });
  const pool = connect(service.config.databaseUrl);
  const log = pino({ level: "silent" });
  const jobs = (await createService(service.config, pool, { log, access: log })).escrow;
  const owner = connect(service.database.ownerUrl, 1);
  return {
    chain,
    service,
    at: { escrow: { chain, escrow }, operator: { chain, escrow: operator } },
    pages,
    site,
    async pass() {
      await owner.query(END_TURNS);
      await owner.query("UPDATE escrow_contest SET next_attempt_at = '-infinity' WHERE is_open");
      await jobs.answerContests();
      await jobs.settleDue();
      await jobs.idle();
    },
    now: async () => Number((await chain.client.getBlock()).timestamp),
    async mineAt(time) {
      await chain.client.setNextBlockTimestamp({ timestamp: BigInt(time) });
      await chain.client.mine({ blocks: 1 });
    },
    async stop() {
      await service.stop();
      await Promise.all([pool.end(), owner.end()]);
      site.stop();
      await chain.stop();
    },
  };
}
