import { type Address, type Client, getAddress, isAddress } from "viem";
import { getChainId, readContract } from "viem/actions";
import { escrowAbi, tokenAbi } from "./abi.ts";
import { type EscrowFacts, escrowAt, networkOf } from "./terms.ts";

const TIMEOUT_MS = 10_000;
const DELIVERY_DOMAIN = { name: "Agent Payment Trust Delivery", version: "1" } as const;

interface Published {
  readonly address: Address;
  readonly deliveryDomain: EscrowFacts["deliveryDomain"];
  readonly deliveryVersion: 1 | 2;
}

/**
 * Everything a sale needs to know about the escrow contract. The trust service says which contract it arbitrates; the
 * contract itself says what it accepts and who gets the fee.
 * @param pinned the contract's address, if the service should not be asked
 * @throws Error if the service or the node does not answer, or the service arbitrates no escrow on the node's chain
 */
export async function readEscrow(client: Client, arbiterUrl: string, pinned?: Address): Promise<EscrowFacts> {
  const chainId = await getChainId(client);
  const { address, deliveryDomain, deliveryVersion }: Published =
    pinned === undefined
      ? await published(arbiterUrl, networkOf({ chainId }))
      : { address: pinned, deliveryDomain: DELIVERY_DOMAIN, deliveryVersion: 2 };
  const [token, feeReceiver] = await Promise.all([
    readContract(client, { address, abi: escrowAbi, functionName: "USDC" }),
    readContract(client, { address, abi: escrowAbi, functionName: "FEE_RECIPIENT" }),
  ]);
  const [name, version] = await Promise.all([
    readContract(client, { address: token, abi: tokenAbi, functionName: "name" }),
    readContract(client, { address: token, abi: tokenAbi, functionName: "version" }),
  ]);
  return {
    chainId,
    ...escrowAt(getAddress(address)),
    usdc: { address: token, name, version },
    feeReceiver,
    deliveryDomain,
    deliveryVersion,
  };
}

interface ContractEntry {
  readonly network?: unknown;
  readonly address?: unknown;
  readonly valid_until?: unknown;
}

interface PublishedForward {
  readonly domain?: unknown;
  /** Only a service that takes version 2 publishes it. */
  readonly version_2?: unknown;
}

async function published(arbiterUrl: string, network: string): Promise<Published> {
  const url = `${arbiterUrl}/escrow`;
  const headers = { accept: "application/json" };
  const response = await fetch(url, { headers, redirect: "error", signal: AbortSignal.timeout(TIMEOUT_MS) });
  if (!response.ok) throw new Error(`${url} answered ${response.status}.`);
  const policy = (await response.json()) as { contracts?: readonly ContractEntry[]; forward?: PublishedForward };
  const inUse = policy.contracts?.find((entry) => entry.network === network && isCurrent(entry.valid_until));
  if (typeof inUse?.address !== "string" || !isAddress(inUse.address, { strict: false })) {
    throw new Error(`${url} names no current escrow contract on ${network}.`);
  }
  const { domain, version_2 } = policy.forward ?? {};
  const deliveryVersion = version_2 === undefined ? 1 : 2;
  return { address: getAddress(inUse.address), deliveryDomain: namesOf(domain), deliveryVersion };
}

const isCurrent = (validUntil: unknown): boolean =>
  typeof validUntil !== "string" || !(Date.parse(validUntil) <= Date.now());

function namesOf(domain: unknown): EscrowFacts["deliveryDomain"] {
  const { name, version } = (domain ?? {}) as { name?: unknown; version?: unknown };
  return typeof name === "string" && typeof version === "string" ? { name, version } : DELIVERY_DOMAIN;
}
