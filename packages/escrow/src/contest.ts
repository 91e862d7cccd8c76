import { type Address, type Hex, type LocalAccount, sha256, stringToBytes, type TypedDataDefinition } from "viem";
import { decodeText } from "./bytes.ts";
import { canonical } from "./canonical.ts";
import type { BoundContest } from "./contest-terms.ts";
import { type Delivery, headerOf, signDelivery } from "./delivery.ts";
import type { EscrowFacts } from "./terms.ts";

/** A delivery as the merchant signed it for the buyer. */
export interface SignedDelivery {
  readonly status: number;
  readonly body_sha256: Hex;
  readonly content_type: string;
  readonly content_encoding: string;
  /** The merchant's signature of the `Delivery`. */
  readonly signature: Hex;
}

/** The ground of a contest; its conditions are the offer's. */
export type ContestClaim =
  | { readonly category: "expect" | "http-delivery" }
  | { readonly category: "payload-hash"; readonly delivery: SignedDelivery };

/** The contest headers in the response of a sale with a window. */
export interface ContestHeaders {
  readonly url: string;
  readonly delivery: SignedDelivery;
}

export interface ForBuyer {
  readonly arbiterUrl: string;
  readonly escrow: EscrowFacts;
  readonly id: Hex;
  readonly delivery: Delivery;
  readonly contest: BoundContest;
}

/** Signs for the buyer the delivery that is forwarded to the arbiter: two different ones refund the payment. */
export async function signedForBuyer(
  account: LocalAccount,
  { arbiterUrl, escrow, id, delivery, contest }: ForBuyer,
): Promise<ContestHeaders> {
  const signature = await signDelivery(account, escrow, id, delivery, contest);
  const signed = {
    status: delivery.status,
    body_sha256: sha256(delivery.body),
    content_type: headerOf(delivery, "content-type"),
    content_encoding: headerOf(delivery, "content-encoding"),
    signature,
  };
  return { url: `${arbiterUrl}/escrow/contest/${id}`, delivery: signed };
}

/**
 * Returns the delivery that the merchant signed for its buyer, from the header `X-Escrow-Delivery` of a response; null
 * without one. Keep it as the claim of a contest by `payload-hash`. If `body_sha256` is not the hash of the body as
 * sent, the merchant signed something other than it sent.
 */
export function signedDeliveryOf({ headers }: Pick<Response, "headers">): SignedDelivery | null {
  const header = headers.get("x-escrow-delivery");
  return header === null ? null : (JSON.parse(decodeText(header)) as SignedDelivery);
}

export interface ContestRequest {
  /** The payer, or the signer for its wallet. */
  readonly account: Pick<LocalAccount, "signTypedData">;
  /** The trust service. */
  readonly arbiterUrl: string;
  readonly paymentId: Hex;
  readonly claim: ContestClaim;
}

/** The state of a contest. */
export interface ContestOutcome {
  /** Null while it is being checked; ask again, with the same claim. */
  readonly decision: "release" | "refund" | null;
  /** The published rule that decided. */
  readonly rule: string | null;
  /** The URL of the signed answer. */
  readonly url: string;
}

/**
 * Thrown if the service does not accept a contest; `code` is the code of its problem response, such as `contest_over`.
 */
export class ContestRefused extends Error {
  readonly code: string;

  constructor(code: string, message: string) {
    super(message);
    this.code = code;
  }
}

/** Returns the EIP-712 typed data that a payer signs to contest. `contract` is the escrow or the operator. */
export const contestTypedData = (
  { chainId, contract }: { readonly chainId: number; readonly contract: Address },
  { paymentId, claim }: Pick<ContestRequest, "paymentId" | "claim">,
): TypedDataDefinition => ({
  domain: { name: "Agent Payment Trust Contest", version: "1", chainId, verifyingContract: contract },
  types: {
    Contest: [
      { name: "paymentId", type: "bytes32" },
      { name: "claimSha256", type: "bytes32" },
    ],
  },
  primaryType: "Contest",
  message: { paymentId, claimSha256: sha256(stringToBytes(canonical(claim))) },
});

const TIMEOUT_MS = 60_000;

/**
 * Contests a delivered payment before its release: once, free of charge, while its window is open. The same claim again
 * gets the same answer.
 * @throws ContestRefused if the service does not accept it; any other error if it could not be reached
 */
export async function contest({ account, arbiterUrl, paymentId, claim }: ContestRequest): Promise<ContestOutcome> {
  const service = arbiterUrl.replace(/\/+$/, "");
  const { network, contract } = await ask(`${service}/escrow/contest/${paymentId}`);
  const chainId = Number(/^eip155:(\d+)$/.exec(String(network))?.[1]);
  const typed = contestTypedData({ chainId, contract: contract as Address }, { paymentId, claim });
  const signature = await account.signTypedData(typed);
  const answer = await ask(`${service}/escrow/contest`, { payment_id: paymentId, claim, signature });
  const { decision, rule } = answer.contest as Pick<ContestOutcome, "decision" | "rule">;
  return { decision, rule, url: String(answer.contest_url) };
}

async function ask(url: string, body?: object): Promise<Record<string, unknown>> {
  const response = await fetch(url, {
    headers: { "content-type": "application/json", accept: "application/json" },
    ...(body === undefined ? {} : { method: "POST", body: JSON.stringify(body) }),
    redirect: "error",
    signal: AbortSignal.timeout(TIMEOUT_MS),
  });
  const answer = (await response.json().catch(() => ({}))) as Record<string, unknown>;
  if (response.ok) return answer;
  const why = `${url} returned ${response.status}: ${String(answer.detail ?? "no detail")}`;
  throw response.status < 500 ? new ContestRefused(String(answer.code ?? response.status), why) : new Error(why);
}
