import { createHash, randomBytes, randomInt } from "node:crypto";
import type pg from "pg";
import type { Logger } from "pino";
import type { ChainReader } from "../adapters/chain/chain-reader.ts";
import { createDecoys } from "../adapters/chain/seeded-accounts.ts";
import { createUsdcReader } from "../adapters/chain/usdc.ts";
import { createDecoyStore } from "../adapters/postgres/decoy-store.ts";
import { createProofStore } from "../adapters/postgres/proof-store.ts";
import type { Seal } from "../adapters/postgres/seal.ts";
import { createSessionStore } from "../adapters/postgres/session-store.ts";
import { BEHAVIOUR_NETWORK } from "../certification/behaviour/behaviour-routes.ts";
import { createBehaviour } from "../certification/behaviour/run-session.ts";
import type { CertificateStore } from "../certification/certificate-store.ts";
import { createDecoyRefunds } from "../certification/decoys/give-back.ts";
import type { PublicationStore } from "../certification/erc8004/ports.ts";
import { createProofs } from "../certification/proofs/publish-proofs.ts";
import type { Config } from "../config.ts";
import { NETWORKS, type Network } from "../kernel/networks.ts";
import type { Settler, TransferSimulator } from "../payments/exact/scheme.ts";

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
}

/** The behavioral tests, and what becomes of their signatures and decoys. */
export function wireBehaviour(wires: BehaviourWires) {
  const { config, pool, seal, certificates, publications, chains, settler, simulators, log, now } = wires;
  const { baseUrl } = config;
  const network = BEHAVIOUR_NETWORK;
  const decoys = createDecoys(config.decoySeed);
  const usdc = createUsdcReader(chains[network], NETWORKS[network]);
  const behaviour = createBehaviour({
    sessions: createSessionStore(pool),
    certificates,
    publications,
    decoys,
    newToken: () => randomBytes(16).toString("base64url"),
    tokenSha256: (token) => createHash("sha256").update(token).digest(),
    toss: () => randomInt(2) === 1,
    baseUrl,
    now,
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
  return { behaviour, upkeep: { proofs, refunds } };
}
