import { createPublicClient, http, numberToHex, type PublicClient, padHex, toEventSelector } from "viem";
import { rpcFetch } from "../../api/platform/chain/rpc.ts";
import type { Config } from "../../api/platform/config/config.ts";
import { MAIN_NETWORK, NETWORKS, type Network, type NetworkFacts } from "../../api/platform/networks.ts";
import { usdcEventsAbi } from "../../contracts/abi.ts";
import { causeOf, type Finding, fail, note, ok } from "./finding.ts";

const [, TRANSFER] = usdcEventsAbi;
const OLD_HEAD_SECONDS = 30;
const EARLY_HEAD_SECONDS = 15;
const OLD_FINAL_SECONDS = 3_600;
const HISTORY_SECONDS = 90 * 86_400;
const HISTORY_BLOCKS = 10n;

/** Compares the capabilities of a network's nodes with the needs of the service. */
export async function inspectNodes(network: Network, config: Config): Promise<readonly Finding[]> {
  const urls = [config.rpcUrls[network]].flat();
  const facts = NETWORKS[network];
  const each = await Promise.all(
    urls.map((url, index) => {
      const subject = urls.length === 1 ? facts.rpcVariable : `${facts.rpcVariable}, URL ${index + 1}`;
      return inspectNode(url, { facts, subject, config }).catch((error: unknown) => [
        fail(subject, `the node failed during the inspection: ${causeOf(error)}. Try again, or use another provider`),
      ]);
    }),
  );
  const alone = note(facts.rpcVariable, "has one node; add a second one from another provider, after a comma");
  return [...each.flat(), ...(urls.length === 1 && network === MAIN_NETWORK ? [alone] : [])];
}

interface Asked {
  readonly facts: NetworkFacts;
  readonly subject: string;
  readonly config: Config;
}

async function inspectNode(url: string, asked: Asked): Promise<readonly Finding[]> {
  const { facts, subject, config } = asked;
  const client = createPublicClient({
    transport: http(url, { retryCount: 0, timeout: 10_000, fetchFn: rpcFetch }),
    cacheTime: 0,
  });
  const chainId = await client.getChainId().catch((error: unknown) => causeOf(error));
  if (typeof chainId === "string")
    return [fail(subject, `the node does not respond (${chainId}): check the URL, and the provider's key and plan`)];
  if (chainId !== facts.chainId)
    return [fail(subject, `is a node of chain ${chainId}: expected ${facts.name}, chain ${facts.chainId}`)];
  const head = await client.getBlock();
  const age = Math.round(Date.now() / 1000) - Number(head.timestamp);
  const [final, batch, range] = await Promise.all([
    inspectFinal(client, subject, config),
    largest(config.rpcBatch, (size) => takesBatch(url, size)),
    largest(config.logBlockRange, (blocks) =>
      searches(client, asked, { first: head.number - BigInt(blocks - 1), blocks }),
    ),
  ]);
  const history = facts.id === MAIN_NETWORK && range > 0 ? await inspectHistory(client, asked, head.number) : [];
  return [
    ok(subject, `chain ${chainId}, block ${head.number}, ${batch} calls per request, ${range} blocks per search`),
    ...clockFindings(subject, age),
    ...final,
    ...history,
    ...(batch < config.rpcBatch ? [note(subject, `accepts ${batch} calls per request: set RPC_BATCH=${batch}`)] : []),
    ...rangeFindings(subject, range, config.logBlockRange),
  ];
}

function clockFindings(subject: string, age: number): readonly Finding[] {
  if (age > OLD_HEAD_SECONDS)
    return [
      fail(
        subject,
        `its newest block is ${age} seconds old: synchronize this machine's clock (NTP), or use a node that keeps up`,
      ),
    ];
  if (age < -EARLY_HEAD_SECONDS)
    return [fail(subject, `its newest block is ${-age} seconds in the future: synchronize this machine's clock (NTP)`)];
  return [];
}

const rangeFindings = (subject: string, range: number, wanted: number): readonly Finding[] => {
  if (range === 0) return [fail(subject, "refuses eth_getLogs even for one block: use another provider or plan")];
  return range < wanted ? [note(subject, `searches ${range} blocks per request: set LOG_BLOCK_RANGE=${range}`)] : [];
};

async function inspectFinal(client: PublicClient, subject: string, { payTo }: Config): Promise<readonly Finding[]> {
  const final = await client.getBlock({ blockTag: "finalized" }).catch(() => null);
  if (final === null)
    return [
      fail(subject, "does not support the block tag finalized, so no payment becomes final: use another provider"),
    ];
  const age = Math.round(Date.now() / 1000) - Number(final.timestamp);
  const hasState = await client.getBalance({ address: payTo, blockNumber: final.number }).then(
    () => true,
    () => false,
  );
  return [
    ...(age > OLD_FINAL_SECONDS
      ? [fail(subject, `its finalized block is ${Math.round(age / 60)} minutes old: use a node that keeps up`)]
      : []),
    ...(hasState
      ? []
      : [
          note(
            subject,
            "does not have the state of its finalized block: use an archive node, or one that keeps 2,000 blocks",
          ),
        ]),
  ];
}

/** The index is filled from logs of the last 90 days. */
async function inspectHistory(client: PublicClient, asked: Asked, head: bigint): Promise<readonly Finding[]> {
  const first = head - BigInt(Math.floor(HISTORY_SECONDS / asked.facts.blockSeconds));
  const isThere = await searches(client, asked, { first: first < 0n ? 0n : first, blocks: Number(HISTORY_BLOCKS) });
  const cure = "use an archive provider for the indexer, or set its START_BLOCK";
  return isThere ? [] : [fail(asked.subject, `does not have logs from 90 days ago, which the index needs: ${cure}`)];
}

/** Halves the wanted size until the node accepts it. Returns 0 if it accepts none. */
async function largest(wanted: number, takes: (size: number) => Promise<boolean>): Promise<number> {
  for (let size = wanted; size >= 1; size = Math.floor(size / 2)) if (await takes(size)) return size;
  return 0;
}

async function takesBatch(url: string, size: number): Promise<boolean> {
  const calls = Array.from({ length: size }, (_, id) => ({ jsonrpc: "2.0", id, method: "eth_chainId", params: [] }));
  try {
    const headers = { "content-type": "application/json" };
    const signal = AbortSignal.timeout(10_000);
    const response = await rpcFetch(url, { method: "POST", headers, body: JSON.stringify(calls), signal });
    const answers: unknown = await response.json();
    return Array.isArray(answers) && answers.length === size && answers.every((one) => "result" in one);
  } catch {
    return false;
  }
}

interface Searched {
  readonly first: bigint;
  readonly blocks: number;
}

const searches = (client: PublicClient, { facts, config }: Asked, { first, blocks }: Searched): Promise<boolean> => {
  const from = first < 0n ? 0n : first;
  const fromBlock = numberToHex(from);
  const toBlock = numberToHex(from + BigInt(blocks - 1));
  const topics = [toEventSelector(TRANSFER), null, padHex(config.payTo, { size: 32 })];
  return client
    .request({ method: "eth_getLogs", params: [{ address: facts.usdc.address, topics, fromBlock, toBlock }] })
    .then(Array.isArray, () => false);
};
