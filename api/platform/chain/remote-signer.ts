import {
  getAddress,
  getTypesForEIP712Domain,
  hashTypedData,
  parseTransaction,
  serializeTransaction,
  serializeTypedData,
  type TransactionSerializableEIP1559,
  toHex,
} from "viem";
import { hasLowS } from "../../../packages/escrow/src/signature-forms.ts";
import type { Address, Hex } from "../wallet.ts";
import { accountOf, asTypedData, createAccount, type SigningAccount, signerOf, type TypedMessage } from "./accounts.ts";
import { rpcFetch } from "./rpc.ts";
import { keccak256 } from "./typed-data.ts";

/** A key that only remote signers hold, and their JSON-RPC URLs in order of preference. */
export interface RemoteKey {
  readonly address: Address;
  readonly signerUrls: readonly string[];
}

/** The private key of an account, or its remote key. */
export type AccountKey = Hex | RemoteKey;

export const openAccount = (key: AccountKey): SigningAccount =>
  typeof key === "string" ? createAccount(key) : createRemoteAccount(key);

/** Returns the address in lower case. */
export const accountAddress = (key: AccountKey): Address => (typeof key === "string" ? accountOf(key) : key.address);

/** Short, because a sender's lock is held meanwhile. */
const WITHIN_MS = 3_000;
/** After a failure, requests fail immediately for this long, so that payments do not queue only to fail. */
const AWAY_MS = 1_000;

/** JSON-RPC's code for a method that does not exist. */
const NO_SUCH_METHOD = -32601;

interface Method {
  readonly name: string;
  /** Whether it takes typed data as JSON in a string. */
  readonly isText?: boolean;
}

/** The methods of Web3Signer and nodes, then clef's, which have another namespace. */
const SIGN_TRANSACTION: readonly Method[] = [{ name: "eth_signTransaction" }, { name: "account_signTransaction" }];
const SIGN_TYPED_DATA: readonly Method[] = [
  { name: "eth_signTypedData_v4" },
  { name: "eth_signTypedData", isText: true },
  { name: "account_signTypedData" },
];

/**
 * Creates an account at remote signers: Web3Signer, clef, or nodes. Each is tried until one signs, because most sign
 * for one chain id. A response is used only if it is this account's signature of the requested data. Otherwise the
 * promise rejects.
 */
function createRemoteAccount({ address, signerUrls }: RemoteKey): SigningAccount {
  const signers = signerUrls.map(createRemoteSigner);
  const isOwn = (digest: Hex, signature: Hex): boolean =>
    signature.length === 132 && hasLowS(signature) && signerOf(digest, signature) === address;
  const firstOf = async <T>(sign: (ask: Ask) => Promise<T>): Promise<T> => {
    const problems: string[] = [];
    for (const ask of signers)
      try {
        return await sign(ask);
      } catch (error) {
        problems.push((error as Error).message);
      }
    throw new Error(problems.join("; "));
  };
  return {
    address,
    signTypedData(typed, digest = hashTypedData(asTypedData(typed))) {
      const wire = wireForm(typed);
      return firstOf(async (ask) => {
        const result = await ask(SIGN_TYPED_DATA, ({ isText }) => [address, isText ? wire : JSON.parse(wire)]);
        const signature = withNamedParity(result);
        if (signature === null || !isOwn(digest, signature))
          throw new Error(`the remote signer returned no signature of ${address} for this data`);
        return signature;
      });
    },
    signTransaction: (transaction) =>
      firstOf(async (ask) => {
        const raw = rawIn(await ask(SIGN_TRANSACTION, () => [callOf(address, transaction)]));
        if (raw === null || !isOwn(...signatureIn(raw, transaction)))
          throw new Error(`the remote signer returned a transaction other than the requested one, or not ${address}'s`);
        return raw;
      }),
  };
}

/** Calls the first of these methods that the signer has. */
type Ask = (among: readonly Method[], params: (method: Method) => readonly unknown[]) => Promise<unknown>;

function createRemoteSigner(signerUrl: string): Ask {
  const { url, headers } = withoutCredentials(signerUrl);
  const known = new Map<readonly Method[], Method>();
  let awayUntil = 0;
  const post = async (call: object): Promise<RpcAnswer> => {
    if (performance.now() < awayUntil) throw new Error("the remote signer did not respond a moment ago");
    try {
      return await send(url, headers, call);
    } catch (error) {
      awayUntil = performance.now() + AWAY_MS;
      throw error;
    }
  };
  return async (among, params) => {
    const method = known.get(among);
    for (const one of method === undefined ? among : [method]) {
      const { result, error } = await post({ method: one.name, params: params(one) });
      if (error?.code === NO_SUCH_METHOD && method === undefined) continue;
      if (error) throw new Error(`the remote signer refuses: ${String(error.message).slice(0, 200)}`);
      known.set(among, one);
      return result;
    }
    throw new Error(`the remote signer has none of ${among.map(({ name }) => name).join(", ")}`);
  };
}

/** Encodes the message as wallets expect it: with the domain's type among the others, and numbers as decimal text. */
const wireForm = ({ domain, types, ...typed }: TypedMessage): string =>
  serializeTypedData(
    asTypedData({ ...typed, domain, types: { EIP712Domain: getTypesForEIP712Domain({ domain }), ...types } }),
  );

const callOf = (from: Address, transaction: TransactionSerializableEIP1559) => ({
  // clef checks any address with capitals against its checksum, and rejects one without.
  from: getAddress(from),
  to: transaction.to ? getAddress(transaction.to) : null,
  data: transaction.data ?? "0x",
  value: toHex(transaction.value ?? 0n),
  gas: toHex(transaction.gas ?? 0n),
  nonce: toHex(transaction.nonce ?? 0),
  maxFeePerGas: toHex(transaction.maxFeePerGas ?? 0n),
  maxPriorityFeePerGas: toHex(transaction.maxPriorityFeePerGas ?? 0n),
  chainId: toHex(transaction.chainId),
});

/** Extracts the bytes. Some signers return only them, others an object that also has the decoded transaction. */
function rawIn(result: unknown): Hex | null {
  const raw = typeof result === "object" && result !== null && "raw" in result ? result.raw : result;
  return typeof raw === "string" && /^0x02[0-9a-f]+$/i.test(raw) ? (raw.toLowerCase() as Hex) : null;
}

/** Returns the digest to sign and the signature, if the bytes are exactly that transaction. */
function signatureIn(raw: Hex, transaction: TransactionSerializableEIP1559): readonly [digest: Hex, signature: Hex] {
  const digest = keccak256(serializeTransaction(transaction));
  const { r, s, yParity } = tryToParse(raw);
  if (r === undefined || s === undefined || (yParity !== 0 && yParity !== 1)) return [digest, "0x"];
  if (serializeTransaction(transaction, { r, s, yParity }) !== raw) return [digest, "0x"];
  const word = (hex: Hex) => hex.slice(2).padStart(64, "0");
  return [digest, `0x${word(r)}${word(s)}${(27 + yParity).toString(16)}`];
}

function tryToParse(raw: Hex): Partial<ReturnType<typeof parseTransaction<`0x02${string}`>>> {
  try {
    return parseTransaction(raw as `0x02${string}`);
  } catch {
    return {};
  }
}

/** Some signers return the parity as 0 or 1. Contracts expect 27 or 28. */
function withNamedParity(result: unknown): Hex | null {
  if (typeof result !== "string" || !/^0x[0-9a-f]{130}$/i.test(result)) return null;
  const signature = result.toLowerCase();
  const parity = Number.parseInt(signature.slice(130), 16);
  return `${signature.slice(0, 130)}${(parity < 27 ? parity + 27 : parity).toString(16)}` as Hex;
}

interface RpcAnswer {
  readonly result?: unknown;
  readonly error?: { readonly code?: unknown; readonly message?: unknown } | null;
}

async function send(url: string, headers: Readonly<Record<string, string>>, call: object): Promise<RpcAnswer> {
  const signal = AbortSignal.timeout(WITHIN_MS);
  const body = JSON.stringify({ jsonrpc: "2.0", id: 1, ...call });
  const sent = { headers: { "content-type": "application/json", ...headers }, body, signal };
  // Some signers also use an HTTP error status, but the body describes the error better.
  const response = await rpcFetch(url, sent).catch((error: Error) => {
    throw new Error(`the remote signer does not respond: ${error.message}`);
  });
  const answer: unknown = await response.json().catch(() => null);
  if (typeof answer !== "object" || answer === null || !("result" in answer || "error" in answer))
    throw new Error(`the remote signer returned status ${response.status} without a JSON-RPC answer`);
  return answer as RpcAnswer;
}

/** Splits a URL that contains a user into the plain URL and the header for the login. */
function withoutCredentials(text: string): {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
} {
  const url = new URL(text);
  const credentials = [url.username, url.password].map(decodeURIComponent).join(":");
  if (credentials === ":") return { url: url.href, headers: {} };
  [url.username, url.password] = ["", ""];
  return { url: url.href, headers: { authorization: `Basic ${Buffer.from(credentials).toString("base64")}` } };
}
