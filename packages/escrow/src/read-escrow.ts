import { type Address, type Client, isAddress } from "viem";
import { getChainId, readContract } from "viem/actions";
import { escrowAbi, tokenAbi } from "./abi.ts";
import { AUTH_CAPTURE } from "./auth-capture/terms.ts";
import { readCustody } from "./custody.ts";
import { type EscrowFacts, networkOf, SCHEME } from "./terms.ts";

const TIMEOUT_MS = 10_000;
const DELIVERY_DOMAIN = { name: "Agent Payment Trust Delivery", version: "1" } as const;

interface Published {
  readonly addresses: readonly Address[];
  readonly deliveryDomain: EscrowFacts["deliveryDomain"];
}

/**
 * Reads everything that a sale needs to know about its contracts: at most one of each kind, starting with what stock
 * clients can pay. The trust service names the contracts it arbitrates; each contract names the holder of the money,
 * the accepted token, and the fee recipient.
 * @param pinned the contracts' addresses, instead of asking the service
 * @throws Error if the service or the node does not respond, or the service arbitrates no contract on the node's chain
 */
export async function readEscrows(
  client: Client,
  arbiterUrl: string,
  pinned?: Address | readonly Address[],
): Promise<readonly EscrowFacts[]> {
  const chainId = await getChainId(client);
  const { addresses, deliveryDomain }: Published =
    pinned === undefined
      ? await published(arbiterUrl, networkOf({ chainId }))
      : { addresses: [pinned].flat(), deliveryDomain: DELIVERY_DOMAIN };
  const known = await Promise.all(
    addresses.map(async (address) => ({ chainId, ...(await readContractFacts(client, address)), deliveryDomain })),
  );
  return ORDER.flatMap((scheme) => known.find((facts) => facts.scheme === scheme) ?? []);
}

const ORDER: readonly EscrowFacts["scheme"][] = [AUTH_CAPTURE, SCHEME];

async function readContractFacts(client: Client, address: Address) {
  const [custody, token, feeReceiver] = await Promise.all([
    readCustody(client, address),
    readContract(client, { address, abi: escrowAbi, functionName: "USDC" }),
    readContract(client, { address, abi: escrowAbi, functionName: "FEE_RECIPIENT" }),
  ]);
  const [name, version] = await Promise.all([
    readContract(client, { address: token, abi: tokenAbi, functionName: "name" }),
    readContract(client, { address: token, abi: tokenAbi, functionName: "version" }),
  ]);
  return { ...custody, usdc: { address: token, name, version }, feeReceiver };
}

/** An entry of the service's list. Its `validity` may begin with "current". */
type ContractEntry = Readonly<Partial<Record<"network" | "address" | "validity" | "scheme", unknown>>>;

async function published(arbiterUrl: string, network: string): Promise<Published> {
  const url = `${arbiterUrl}/escrow`;
  const headers = { accept: "application/json" };
  const response = await fetch(url, { headers, redirect: "error", signal: AbortSignal.timeout(TIMEOUT_MS) });
  if (!response.ok) throw new Error(`${url} returned ${response.status}.`);
  const policy = (await response.json()) as { contracts?: readonly ContractEntry[]; forward?: { domain?: unknown } };
  const current = policy.contracts?.filter((entry) => entry.network === network && isCurrent(entry)) ?? [];
  const addresses = current.map(({ address }) => address).filter(isContractAddress);
  if (addresses.length === 0) throw new Error(`${url} names no current escrow contract on ${network}.`);
  return { addresses, deliveryDomain: namesOf(policy.forward?.domain) };
}

const isContractAddress = (address: unknown): address is Address =>
  typeof address === "string" && isAddress(address, { strict: false });

/** Whether new payments go to this contract, by a scheme that this package knows. */
const isCurrent = ({ validity, scheme }: ContractEntry): boolean =>
  (typeof validity !== "string" || validity.startsWith("current")) && ORDER.some((known) => known === scheme);

function namesOf(domain: unknown): EscrowFacts["deliveryDomain"] {
  const { name, version } = (domain ?? {}) as { name?: unknown; version?: unknown };
  return typeof name === "string" && typeof version === "string" ? { name, version } : DELIVERY_DOMAIN;
}
