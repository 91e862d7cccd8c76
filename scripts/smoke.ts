// Tests an installation as a client: `npm run smoke -- https://trust.example`. It pays 0.60 USDC.
import { parseArgs } from "node:util";
import { x402Client, x402HTTPClient } from "@x402/core/client";
import { AuthCaptureEvmScheme } from "@x402/evm/auth-capture/client";
import { ExactEvmScheme } from "@x402/evm/exact/client";
import { createPublicClient, http, isHex, type LocalAccount, type PublicClient } from "viem";
import { privateKeyToAccount } from "viem/accounts";
import { isLoopback } from "../api/platform/config/values.ts";
import { formatUsd } from "../api/platform/money.ts";
import { NETWORKS, type NetworkFacts } from "../api/platform/networks.ts";
import { escrowAbi } from "../contracts/abi.ts";
import { claimsOf, type KeySet, parseKeySet, verifyDocument } from "../packages/verifier/src/index.ts";
import { isObject, type JsonObject } from "../packages/verifier/src/strict-json.ts";
import { readSettings } from "./embedded/settings.ts";
import { waitUntil } from "./embedded/wait-until.ts";

const USAGE = `Usage: npm run smoke -- <url> [--real-money]

Buys a certificate, verifies it, pays through the escrow, and checks a signed verdict. PAYER_PRIVATE_KEY is an account with
0.60 USDC on the installation's network; it needs no ETH. On Base, --real-money confirms the spending. The chain is read
from BASE_RPC_URL or BASE_SEPOLIA_RPC_URL, or else from a public node.`;

const ANSWERS_WITHIN_MS = 60_000;
const MINED_WITHIN_MS = 120_000;

interface Shop {
  readonly origin: string;
  readonly network: NetworkFacts;
  readonly chain: PublicClient;
  readonly payer: LocalAccount;
  readonly keys: KeySet;
}

class Failure extends Error {}

function demand(condition: unknown, problem: string): asserts condition {
  if (!condition) throw new Failure(problem);
}

async function getText(url: string): Promise<string> {
  const response = await fetch(url, {
    headers: { accept: "application/json" },
    signal: AbortSignal.timeout(ANSWERS_WITHIN_MS),
  });
  demand(response.ok, `GET ${url} returned ${response.status}`);
  return await response.text();
}

async function getJson(url: string): Promise<JsonObject> {
  const json: unknown = JSON.parse(await getText(url));
  demand(isObject(json as JsonObject), `GET ${url} does not return a JSON object`);
  return json as JsonObject;
}

interface Order {
  readonly path: string;
  readonly scheme: "exact" | "auth-capture";
  /** The maximum to pay, in atomic USDC. */
  readonly most: bigint;
  readonly body?: object;
}

interface Bought {
  readonly text: string;
  readonly json: JsonObject;
  /** Resends the same payment. */
  readonly again: () => Promise<Response>;
}

/** Pays a route once, in USDC of the installation's network and never more than expected. */
async function buy({ origin, network, payer }: Shop, { path, scheme, most, body }: Order): Promise<Bought> {
  const url = `${origin}${path}`;
  const order = (headers: Readonly<Record<string, string>> = {}) =>
    fetch(url, {
      method: "POST",
      headers: { ...headers, accept: "application/json", ...(body && { "content-type": "application/json" }) },
      ...(body && { body: JSON.stringify(body) }),
      signal: AbortSignal.timeout(ANSWERS_WITHIN_MS),
    });
  const unpaid = await order();
  demand(unpaid.status === 402, `POST ${url} returned ${unpaid.status} without a payment; expected 402`);
  const client = new x402Client()
    .register(network.id, new ExactEvmScheme(payer))
    .register(network.id, new AuthCaptureEvmScheme(payer));
  const wire = new x402HTTPClient(client);
  const terms = wire.getPaymentRequiredResponse((name) => unpaid.headers.get(name), await unpaid.json());
  const accepts = terms.accepts.filter((one) => one.scheme === scheme && one.network === network.id);
  const [offer] = accepts;
  demand(offer, `POST ${url} does not offer ${scheme} on ${network.id}`);
  demand(
    BigInt(offer.amount) <= most && offer.asset.toLowerCase() === network.usdc.address,
    `POST ${url} asks for ${offer.amount} of ${offer.asset}; expected at most ${most} of ${network.usdc.address}`,
  );
  const headers = wire.encodePaymentSignatureHeader(await client.createPaymentPayload({ ...terms, accepts: [offer] }));
  const again = () => order(headers);
  let paid = await again();
  // A 503 means: resend the same header.
  await waitUntil(
    async () => {
      if (paid.status === 503) paid = await again();
      return paid.status !== 503;
    },
    ANSWERS_WITHIN_MS,
    1_000,
  );
  const text = await paid.text();
  demand(paid.status === 200, `POST ${url} returned ${paid.status} to a payment: ${text.slice(0, 500)}`);
  return { text, json: JSON.parse(text) as JsonObject, again };
}

async function isMined({ chain }: Shop, transaction: unknown): Promise<void> {
  demand(isHex(transaction), "the response does not name a transaction");
  const found = () => chain.getTransactionReceipt({ hash: transaction }).then(({ status }) => status === "success");
  demand(await waitUntil(found, MINED_WITHIN_MS, 500), `the chain does not show transaction ${transaction}`);
}

/** Verifies a document's signature with the published keys and the installation's name. */
async function signedDocument({ origin, keys }: Shop, text: string): Promise<JsonObject> {
  const { signature, document } = await verifyDocument(text, { keys, issuer: origin });
  demand(signature.valid && document !== null, `a signature does not verify: ${signature.valid || signature.reason}`);
  return document;
}

const member = (value: JsonObject[string] | undefined, name: string): JsonObject[string] | undefined =>
  isObject(value ?? null) ? (value as JsonObject)[name] : undefined;

async function buysCertificate(shop: Shop): Promise<string> {
  const { text, json, again } = await buy(shop, { path: "/test/basic", scheme: "exact", most: 250_000n });
  demand(json.verdict === "pass", `the certificate's verdict is ${String(json.verdict)}`);
  await isMined(shop, member(json.settlement, "transaction"));
  const replayed = await again();
  const isReplay = replayed.headers.get("x-idempotent-replay") === "true" && (await replayed.text()) === text;
  demand(isReplay, "resending the payment did not return the same response");
  return String(json.cert_url);
}

async function verifiesPayer(shop: Shop, certificate: string): Promise<string> {
  const { origin, payer, network } = shop;
  const record = await getJson(`${origin}/verify?wallet=${payer.address}`);
  const listed = Array.isArray(record.certs) ? record.certs : [];
  demand(record.verified === true, `the payer is not verified: ${JSON.stringify(record.reasons)}`);
  demand(
    listed.some((one) => member(one, "cert_url") === certificate),
    `GET /verify does not list ${certificate}`,
  );
  demand(
    record.test_network === (network.isTest ? network.id : undefined),
    "GET /verify does not name its test network",
  );
  const credential = await signedDocument(shop, await getText(`${origin}/credential/${payer.address}`));
  const { wallet, summary } = claimsOf(credential);
  demand(wallet === payer.address.toLowerCase(), "the credential is for another wallet");
  return summary;
}

async function holdsAndReleases(shop: Shop): Promise<string | null> {
  const { contracts } = await getJson(`${shop.origin}/escrow`);
  if (!Array.isArray(contracts) || contracts.length === 0) return null;
  const { json } = await buy(shop, { path: "/escrow/demo", scheme: "auth-capture", most: 100_000n });
  const { escrow } = json;
  const [payment, contract] = [member(escrow, "payment_id"), member(escrow, "contract")];
  demand(isHex(payment) && isHex(contract), "POST /escrow/demo does not name a payment and a contract");
  const record = String(member(member(escrow, "evaluation"), "record_url"));
  const { decision } = await signedDocument(shop, await getText(record));
  demand(decision === "release", `the decision in ${record} is ${String(decision)}`);
  await isMined(shop, member(member(escrow, "hold"), "transaction"));
  const fromBlock = BigInt(Number(member(member(escrow, "hold"), "block")));
  const isReleased = async () => {
    const query = {
      address: contract,
      abi: escrowAbi,
      eventName: "Released",
      args: { id: payment },
      fromBlock,
    } as const;
    return (await shop.chain.getContractEvents(query)).length === 1;
  };
  demand(await waitUntil(isReleased, MINED_WITHIN_MS, 1_000), `payment ${payment} is not released after two minutes`);
  return payment;
}

/** A text and its SHA-256. */
const DELIVERED = {
  payload_text: "abc",
  expected_sha256: "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
};

async function checksVerdict(shop: Shop): Promise<string> {
  const claim = { category: "payload-hash", conditions: DELIVERED };
  const { text } = await buy(shop, { path: "/arbiter/verify", scheme: "exact", most: 250_000n, body: claim });
  const verdict = await signedDocument(shop, text);
  demand(verdict.verdict === "release", `the verdict is ${String(verdict.verdict)}; expected release`);
  const url = String(verdict.verdict_url);
  const published = await signedDocument(shop, await getText(url));
  demand(published.id === verdict.id, `${url} has another verdict`);
  return url;
}

async function openShop(origin: string, isRealMoney: boolean): Promise<Shop> {
  const key = process.env.PAYER_PRIVATE_KEY;
  demand(isHex(key) && key.length === 66, `PAYER_PRIVATE_KEY is missing or wrong: 0x and 64 hex digits.\n\n${USAGE}`);
  const manifest = await getText(`${origin}/.well-known/x402`);
  const offered = JSON.parse(manifest) as { resources?: readonly { resource?: string; network?: string }[] };
  const sold = (offered.resources ?? []).find(({ resource }) => resource === `${origin}/test/basic`);
  const network = Object.values(NETWORKS).find(({ id }) => id === sold?.network);
  demand(network, `${origin}/.well-known/x402 does not sell ${origin}/test/basic. Is ${origin} its BASE_URL?`);
  const isLocal = isLoopback(new URL(origin).hostname);
  demand(
    network.isTest || isLocal || isRealMoney,
    `${origin} takes real USDC on ${network.name}. Add --real-money to spend 0.60 USDC there.`,
  );
  const { rpcPorts } = await readSettings(process.env);
  const localUrl = `http://127.0.0.1:${rpcPorts[network.id]}`;
  const named = process.env[network.rpcVariable]?.split(",")[0]?.trim();
  const url = named || (isLocal ? localUrl : network.publicRpcUrl);
  const chain = createPublicClient({ transport: http(url), cacheTime: 0 });
  const payer = privateKeyToAccount(key);
  return { origin, network, chain, payer, keys: await parseKeySet(await getText(`${origin}/.well-known/jwks.json`)) };
}

async function main(): Promise<void> {
  const { positionals, values } = parseArgs({
    allowPositionals: true,
    options: { "real-money": { type: "boolean", default: false } },
  });
  const [url, ...more] = positionals;
  demand(url !== undefined && more.length === 0 && URL.canParse(url), USAGE);
  const shop = await openShop(new URL(url).origin, values["real-money"]);
  const { network, payer } = shop;
  console.log(`${shop.origin}, ${network.name}: ${payer.address} pays up to ${formatUsd(600_000n)} ${network.money}`);
  const certificate = await buysCertificate(shop);
  console.log(`bought    ${certificate}`);
  console.log(`verified  ${await verifiesPayer(shop, certificate)}`);
  const payment = await holdsAndReleases(shop);
  console.log(payment === null ? "skipped   the escrow, which is not configured" : `released  ${payment}`);
  console.log(`verdict   ${await checksVerdict(shop)}`);
}

try {
  await main();
} catch (error) {
  console.error(error instanceof Failure ? error.message : `The smoke test failed: ${(error as Error).message}`);
  process.exitCode = 1;
}
