import { createHash, randomBytes, randomInt } from "node:crypto";
import type pg from "pg";
import type { Logger } from "pino";
import type { Settler, TransferSimulator } from "../../payments/schemes/exact.ts";
import type { ChainReader } from "../../platform/chain/chain.ts";
import { createDecoys } from "../../platform/chain/seeded-accounts.ts";
import { createUsdcReader } from "../../platform/chain/usdc.ts";
import { sleep } from "../../platform/clock.ts";
import type { Config } from "../../platform/config/config.ts";
import type { Seal } from "../../platform/db/seal.ts";
import { NETWORKS, type Network } from "../../platform/networks.ts";
import type { PublicationStore } from "../agent-registries/store.ts";
import { createDecoyRefunds } from "../decoys/give-back.ts";
import { createDecoyStore } from "../decoys/store.ts";
import { createProofs } from "../proofs/publish-proofs.ts";
import { createProofStore } from "../proofs/store.ts";
import { WAYS, type Way } from "../retry/lost-order.ts";
import { createRetryTests } from "../retry/run-retry.ts";
import { createLostOrderStore } from "../retry/store.ts";
import type { CertificateStore } from "../store.ts";
import { BEHAVIOUR_NETWORK } from "./routes.ts";
import { createBehaviour } from "./run-session.ts";
import { createSessionStore } from "./store.ts";

export interface BehaviourWires {
  readonly config: Config;
  readonly pool: pg.Pool;
  readonly seal: Seal;
  readonly certificates: CertificateStore;
  readonly publications: PublicationStore;
  readonly chains: Readonly<Record<Network, ChainReader>>;
  readonly settler: Settler;
  readonly simulators: Readonly<Record<Network, TransferSimulator>>;
  readonly log: Logger;
  readonly now: () => Date;
  /** How late a late answer comes, in milliseconds, where that is not what is published. */
  readonly lateMs?: number | undefined;
}

/** The behavioral tests, and what becomes of their signatures and decoys. */
export function wireBehaviour(wires: BehaviourWires) {
  const { config, pool, seal, certificates, publications, chains, settler, simulators, log, now } = wires;
  const { baseUrl } = config;
  const network = BEHAVIOUR_NETWORK;
  const decoys = createDecoys(config.decoySeed);
  const usdc = createUsdcReader(chains[network], NETWORKS[network]);
  const testing = {
    sessions: createSessionStore(pool),
    certificates,
    publications,
    decoys,
    newToken: () => randomBytes(16).toString("base64url"),
    tokenSha256: (token: string) => createHash("sha256").update(token).digest(),
    toss: () => randomInt(2) === 1,
    baseUrl,
    now,
  };
  const behaviour = createBehaviour(testing);
  const retry = createRetryTests({
    ...testing,
    lostOrders: createLostOrderStore(pool),
    draw: () => WAYS[randomInt(WAYS.length)] as Way,
    sleep,
    lateMs: wires.lateMs,
  });
  const proofs = createProofs({ proofs: createProofStore(pool, seal), certificates, usdc, log });
  const refunds = createDecoyRefunds({
    decoys: createDecoyStore(pool, network),
    signer: decoys,
    usdc,
    settler,
    refusal: async (authorization, signature) => (await simulators[network].simulate(authorization, signature)).refused,
    network,
    baseUrl,
    now,
    log,
  });
  return { behaviour, retry, upkeep: { proofs, refunds } };
}
