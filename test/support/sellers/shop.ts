import { text } from "node:stream/consumers";
import { encodePaymentRequiredHeader, encodePaymentResponseHeader } from "@x402/core/http";
import { authorizationTypes } from "@x402/evm";
import { type Address, type Hex, isAddressEqual, type LocalAccount, recoverTypedDataAddress } from "viem";
import { generatePrivateKey, privateKeyToAccount } from "viem/accounts";
import type { Authorization } from "../../../api/platform/chain/view.ts";
import { offerReceipt } from "../../../packages/escrow/src/offer-receipt.ts";
import type { TestChain } from "../chain/chain.ts";
import { type LocalServer, serveHttp } from "../http-server.ts";
import { broadcast } from "../payments/on-chain.ts";
import { usdcDomain } from "../payments/signing.ts";

/** A shop's fault. */
export type Fault =
  | "another price each time"
  | "HEAD is free"
  | "names another resource"
  | "names another transaction"
  | "charges and fails"
  | "serves a replay"
  | "no lock"
  | "any route"
  | "any body"
  | "takes less"
  | "checks no signature"
  | "forgets answers"
  | "public cache"
  | "free after a sale"
  | "offers another amount"
  | "never settles"
  | "sells once";

/** Changes a shop's response, for any fault on the wire. */
export type Twist = (
  response: ShopResponse,
  asked: Asked & { readonly isPaid: boolean; readonly sales: number },
) => ShopResponse;

const PRICE = 1_000n;

/** A test's control over an open shop. */
export interface Shop extends LocalServer {
  /** The shop's payee. */
  readonly payTo: Address;
  readonly account: LocalAccount;
  /** Puts a line into the consent file for this number of reads. Null removes it. */
  readonly place: (line: string | null, times?: number) => void;
  /** Sets a hook that is awaited before each response. `cut` closes the connection instead. */
  readonly before: (
    wait: (request: { readonly isPaid: boolean; readonly path: string }) => Promise<Waited> | Waited,
  ) => void;
  /** The number of requests of any kind. */
  readonly requests: () => number;
}

// biome-ignore lint/suspicious/noConfusingVoidType: most hooks return nothing.
type Waited = void | "cut";

export interface ShopResponse {
  readonly status: number;
  readonly headers: Record<string, string>;
  readonly body: string | Buffer;
}

interface Asked {
  readonly method: string;
  readonly url: string;
  readonly body: string;
}

interface Presented {
  readonly authorization: Authorization;
  readonly signature: Hex;
  readonly resource: { readonly url: string };
}

let last: Promise<unknown> = Promise.resolve();

/**
 * Runs one at a time, because all shops of a test send from one account and simultaneous transactions would get the
 * same nonce.
 */
function inTurn<T>(work: () => Promise<T>): Promise<T> {
  const next = last.then(work);
  last = next.catch(() => undefined);
  return next;
}

/**
 * A shop that sells two routes for USDC, honest except for one fault. One payment buys one response, which every retry
 * of the same request gets byte for byte.
 */
export async function openShop(chain: TestChain, wrong: Fault | Twist | null = null): Promise<Shop> {
  const [fault, twist] = typeof wrong === "function" ? [null, wrong] : [wrong, null];
  const account = privateKeyToAccount(generatePrivateKey());
  const statements = offerReceipt(account);
  const sold = new Map<Hex, { readonly request: string; readonly answer: Promise<ShopResponse> }>();
  let [quotes, results, requests] = [0, 0, 0];
  let consent: { line: string; times: number } | null = null;
  let wait: Parameters<Shop["before"]>[0] = () => undefined;

  const server = await serveHttp(async (request, response) => {
    const asked = { method: request.method ?? "", url: `${server.url}${request.url}`, body: await text(request) };
    const header = request.headers["payment-signature"];
    requests += 1;
    const waited = await wait({ isPaid: header !== undefined, path: request.url ?? "" });
    if (waited === "cut") return void request.socket.destroy();
    const honest: ShopResponse = await answer(asked, typeof header === "string" ? header : null).catch(
      (error: unknown) => ({
        status: 500,
        headers: {},
        body: String(error),
      }),
    );
    const changed =
      twist === null ? honest : twist(honest, { ...asked, isPaid: header !== undefined, sales: sold.size });
    response.writeHead(changed.status, changed.headers).end(changed.body);
  });
  return {
    ...server,
    payTo: account.address,
    account,
    place: (line, times = Number.POSITIVE_INFINITY) => {
      consent = line === null ? null : { line, times };
    },
    before: (next) => {
      wait = next;
    },
    requests: () => requests,
  };

  async function answer(asked: Asked, header: string | null): Promise<ShopResponse> {
    if (new URL(asked.url).pathname === "/.well-known/x402-exam.txt") return file();
    if (!["/haiku", "/sonnet"].includes(new URL(asked.url).pathname)) return { status: 404, headers: {}, body: "" };
    if (asked.method === "HEAD" && fault === "HEAD is free") return { status: 200, headers: {}, body: "" };
    if (header === null) {
      if (fault === "free after a sale" && results > 0) return make(asked);
      return challenge(asked, "payment required");
    }
    const presented = read(header);
    const request = JSON.stringify(fault === "any body" ? asked.url : fault === "any route" ? asked.body : asked);
    const known = sold.get(presented.authorization.nonce);
    if (fault === "sells once" && known === undefined && sold.size > 0) return challenge(asked, "sold out");
    if (known === undefined || fault === "no lock") return begin(asked, { presented, request });
    if (fault === "serves a replay" || (fault === "any body" && request === known.request)) return make(asked);
    if (fault === "forgets answers") return challenge(asked, "this payment was used");
    return request === known.request ? known.answer : { status: 409, headers: {}, body: "another request" };
  }

  function file(): ShopResponse {
    if (consent === null || consent.times-- <= 0) return { status: 404, headers: {}, body: "" };
    return { status: 200, headers: { "content-type": "text/plain" }, body: `# who may examine us\n${consent.line}\n` };
  }

  async function begin(
    asked: Asked,
    { presented, request }: { presented: Presented; request: string },
  ): Promise<ShopResponse> {
    const refusal = await refusalOf(asked, presented);
    if (refusal !== null) return challenge(asked, refusal);
    const { nonce } = presented.authorization;
    // Another copy may have arrived while the signature was checked.
    const meanwhile = sold.get(nonce);
    if (meanwhile !== undefined && fault !== "no lock") return meanwhile.answer;
    const answer = sell(asked, presented);
    sold.set(nonce, { request, answer });
    return answer;
  }

  async function sell(asked: Asked, presented: Presented): Promise<ShopResponse> {
    if (fault === "never settles") return make(asked);
    const settling = inTurn(() => broadcast(chain, presented)).catch((error: unknown) => {
      if (fault === "no lock" || fault === "checks no signature") return `0x${"0".repeat(64)}` as Hex;
      throw error;
    });
    const transaction = await settling;
    if (fault === "charges and fails") return { status: 500, headers: {}, body: "out of paper" };
    const response = await make(asked);
    const { network } = await accepted();
    const payer = presented.authorization.from;
    const extensions = await statements.receipt(
      { network, resourceUrl: resourceOf(asked), payer, transaction },
      Math.floor(Date.now() / 1000),
    );
    const reported = fault === "names another transaction" ? (`0x${"12".repeat(32)}` as Hex) : transaction;
    const settled = { success: true, transaction: reported, network, payer, extensions };
    const header = encodePaymentResponseHeader(settled as Parameters<typeof encodePaymentResponseHeader>[0]);
    return { ...response, headers: { ...response.headers, "payment-response": header } };
  }

  async function make({ url }: Asked): Promise<ShopResponse> {
    results += 1;
    const control = fault === "public cache" ? "public, max-age=60" : "private, no-store";
    const headers = { "content-type": "application/json", "cache-control": control };
    return { status: 200, headers, body: JSON.stringify({ poem: new URL(url).pathname, number: results }) };
  }

  async function refusalOf({ url }: Asked, { authorization, signature, resource }: Presented): Promise<string | null> {
    const { from, to, value, validAfter, validBefore } = authorization;
    const now = (await chain.client.getBlock()).timestamp;
    if (resource.url !== resourceOf({ url }) && fault !== "any route") return "for another resource";
    if (!isAddressEqual(to, account.address)) return "for another recipient";
    if (value < PRICE && fault !== "takes less") return "for less";
    if (validAfter > now) return "not valid yet";
    if (validBefore <= now + 5n) return "expired";
    if (fault === "checks no signature") return null;
    const typed = { domain: usdcDomain(chain.network), types: authorizationTypes, message: authorization } as const;
    const signer = await recoverTypedDataAddress({
      ...typed,
      primaryType: "TransferWithAuthorization",
      signature,
    }).catch(() => null);
    return signer !== null && isAddressEqual(signer, from) ? null : "the signature is not the payer's";
  }

  async function accepted() {
    const { id: network, usdc } = chain.network;
    const amount = fault === "another price each time" ? PRICE + BigInt(quotes++) : PRICE;
    const extra = { name: usdc.name, version: usdc.version };
    return {
      scheme: "exact",
      network,
      asset: usdc.address,
      amount: `${amount}`,
      payTo: account.address,
      maxTimeoutSeconds: 60,
      extra,
    } as const;
  }

  async function challenge({ url }: Pick<Asked, "url">, error: string): Promise<ShopResponse> {
    const accepts = [await accepted()];
    const offered = fault === "offers another amount" ? accepts.map((entry) => ({ ...entry, amount: "1" })) : accepts;
    // A chain may be ahead of the clock in tests that advance time.
    const now = Math.max(Date.now(), Number((await chain.client.getBlock()).timestamp) * 1_000);
    const extensions = await statements.offers(resourceOf({ url }), offered, now);
    const terms = { x402Version: 2, error, resource: { url: resourceOf({ url }) }, accepts, extensions };
    const header = encodePaymentRequiredHeader(terms as unknown as Parameters<typeof encodePaymentRequiredHeader>[0]);
    return { status: 402, headers: { "payment-required": header }, body: "{}" };
  }

  function resourceOf({ url }: Pick<Asked, "url">): string {
    return fault === "names another resource" ? "https://elsewhere.example/haiku" : url;
  }
}

function read(header: string): Presented {
  const { payload, resource } = JSON.parse(Buffer.from(header, "base64").toString());
  const { from, to, value, validAfter, validBefore, nonce } = payload.authorization;
  const times = { value: BigInt(value), validAfter: BigInt(validAfter), validBefore: BigInt(validBefore) };
  return { authorization: { from, to, nonce, ...times }, signature: payload.signature, resource };
}

type Json = Record<string, unknown>;

const decoded = (header: string): Json => JSON.parse(Buffer.from(header, "base64").toString()) as Json;
const encoded = (value: object): string => Buffer.from(JSON.stringify(value)).toString("base64");

/** Changes the quote in a 402. */
export const quoting =
  (change: (terms: Json) => Json, when: (asked: Parameters<Twist>[1]) => boolean = () => true): Twist =>
  (response, asked) => {
    const header = response.headers["payment-required"];
    if (header === undefined || !when(asked)) return response;
    return { ...response, headers: { ...response.headers, "payment-required": encoded(change(decoded(header))) } };
  };

/** Changes the settlement in a sale's response. Null removes it. */
export const settling =
  (change: (settlement: Json) => Json | null): Twist =>
  (response) => {
    const { "payment-response": header, ...others } = response.headers;
    if (header === undefined) return response;
    const settlement = change(decoded(header));
    return {
      ...response,
      headers: settlement === null ? others : { ...others, "payment-response": encoded(settlement) },
    };
  };

/** Changes the responses to one method. */
export const answering =
  (method: string, answer: (response: ShopResponse) => ShopResponse): Twist =>
  (response, asked) =>
    asked.method === method ? answer(response) : response;

/** The first entry with another price. */
export const priced = (amount: string) => (terms: Json) => ({
  ...terms,
  accepts: (terms.accepts as Json[]).map((entry) => ({ ...entry, amount })),
});

/** Replaces a signed offer or receipt. */
export function signedAs(name: "offers" | "receipt", change: (signed: Json) => unknown) {
  return (given: Json): Json => {
    const extensions = given.extensions as Record<string, { info: Json }>;
    const { info } = extensions["offer-receipt"] ?? { info: {} };
    const old = info[name];
    const changed = Array.isArray(old) ? old.map((one) => change(one as Json)) : change(old as Json);
    return { ...given, extensions: { ...extensions, "offer-receipt": { info: { ...info, [name]: changed } } } };
  };
}

/** The same 402 in version 1, in its body. */
export const alsoInVersion1 =
  (amount: string): Twist =>
  (response, { url }) => {
    const header = response.headers["payment-required"];
    if (header === undefined) return response;
    const accepts = (decoded(header).accepts as Json[]).map(({ amount: _, network, ...entry }) => ({
      ...entry,
      network: network === "eip155:8453" ? "base" : network,
      maxAmountRequired: amount,
      resource: url,
      description: "",
      mimeType: "application/json",
    }));
    return { ...response, body: JSON.stringify({ x402Version: 1, error: "payment required", accepts }) };
  };
