import { createArbiterRelayer, type EscrowWires } from "../../escrow/wiring.ts";
import { MAIN_NETWORK } from "../../platform/networks.ts";
import type { Relayer } from "../../platform/relayer/relayer.ts";
import type { CertificateStore } from "../store.ts";
import { checkRegistries, createRegistries } from "./chain.ts";
import { createOrderIntake, testOrdering } from "./order.ts";
import { createPublishing } from "./publish.ts";
import type { PublicationStore } from "./store.ts";

export interface PublishingWires extends Omit<EscrowWires, "meter"> {
  readonly store: PublicationStore;
  readonly certificates: CertificateStore;
  /** The arbiter's, if the escrow has one. */
  readonly relayer: Relayer | null;
}

/** Publishing to the registries of ERC-8004, by the arbiter's account; nothing of it unless it is turned on. */
export async function wirePublishing({ relayer: given, ...wires }: PublishingWires) {
  const { config, pool, chains, log, now, signer, store, certificates } = wires;
  const { erc8004, baseUrl } = config;
  if (erc8004 === null) return { relayer: given, ordering: testOrdering(null, createOrderIntake(null)), publish: null };
  const chain = chains[MAIN_NETWORK];
  await checkRegistries(chain.client, erc8004);
  const relayer = given ?? createArbiterRelayer({ config, pool, chains, log });
  const registries = createRegistries({ chain, relayer, identity: erc8004.identity });
  const { gasPerDay } = erc8004;
  return {
    relayer,
    ordering: testOrdering(erc8004, createOrderIntake(registries)),
    publish: createPublishing({ store, registries, certificates, signer, baseUrl, gasPerDay, now, log }),
  };
}
