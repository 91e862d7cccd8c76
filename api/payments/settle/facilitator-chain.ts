import { randomBytes } from "node:crypto";
import type { PaymentPayload } from "@x402/core/types";
import { SignJWT } from "jose";
import type { TransactionReceipt } from "viem";
import { authorizationDigest, authorizationWire } from "../../platform/chain/authorization.ts";
import { discreet } from "../../platform/chain/rpc.ts";
import type { FacilitatorAuth } from "../../platform/config/facilitator-auth.ts";
import { NETWORKS, type Network } from "../../platform/networks.ts";
import type { Member, Shipment } from "../../platform/relayer/form.ts";
import type { Relayer } from "../../platform/relayer/relayer.ts";
import type { Address } from "../../platform/wallet.ts";
import { requirements, type Settler } from "../schemes/exact.ts";
import type { Batching } from "./batching-chain.ts";
import type { SignedTransfer } from "./settlement-batch.ts";
import { type CostCeiling, MOST_GAS, mostFeeFor } from "./simulation.ts";
import { transferData } from "./transfer.ts";

/** How long a submission waits for its transaction to be mined, in milliseconds. */
export const MINED_WITHIN_MS = 15_000;

/** A payment to settle, and what it settles. */
export interface Payment<Signed = SignedTransfer> extends Member {
  readonly transfer: Signed;
}

/**
 * Sends a payment alone in one transaction, once. Resolves when it is mined, and rejects with `TurnedAway` if it was
 * not sent and never will be.
 */
async function settleAlone(
  relayer: Relayer,
  usdc: Address,
  { transfer, ...member }: Payment & Pick<Shipment, "lane">,
): Promise<void> {
  const data = transferData(transfer.authorization, transfer.signature);
  const transaction = await relayer.send({ to: usdc, data, gas: MOST_GAS, ...member });
  assertSucceeded(await relayer.waitFor(transaction, MINED_WITHIN_MS));
}

export function assertSucceeded({ status, transactionHash }: TransactionReceipt): void {
  if (status !== "success") throw new Error(`transaction ${transactionHash} reverted`);
}

const MAX_ANSWER_BYTES = 64 * 1024;

type Submission = Parameters<Settler["submit"]>[0];

/** Sends one network's payments. */
export interface Lanes {
  readonly relayer: Relayer;
  readonly batching: Batching;
  readonly ceiling: CostCeiling | null;
}

/**
 * Creates the in-process facilitator. It sends each transfer once through its network's relayer, in a batch or alone.
 */
export const createInProcessSettler = (lanes: Readonly<Record<Network, Lanes>>): Settler => ({
  submit: discreet(async ({ network, authorization, signature, lease }) => {
    const { relayer, batching, ceiling } = lanes[network];
    const purpose = authorizationDigest(authorization, NETWORKS[network]);
    const mostFee = mostFeeFor(ceiling, authorization.value);
    const payment = { transfer: { authorization, signature }, purpose, lease, mostFee };
    if (await batching.submit(payment)) return;
    const lane = await batching.laneOf(payment.transfer);
    await settleAlone(relayer, NETWORKS[network].usdc.address, { ...payment, lane });
  }),
  failed: ({ network, authorization }) =>
    lanes[network].relayer.failed(authorizationDigest(authorization, NETWORKS[network])),
});

/**
 * Returns the payment in version 2 of x402. Facilitators list a route by the `resource` and `extensions` of its
 * payments.
 */
const payloadOf = ({ network, authorization, signature, resource, extensions }: Submission): PaymentPayload => ({
  x402Version: 2,
  resource,
  accepted: requirements({ network, payTo: authorization.to, value: authorization.value }),
  payload: { authorization: authorizationWire(authorization), signature },
  ...(extensions && { extensions }),
});

/**
 * Creates the client of a facilitator over HTTP. It does not use the library's client, because that follows redirects
 * and reads responses of any size. The response is read up to a limit and discarded, because it decides nothing.
 */
export function createRemoteSettler(url: string, auth?: FacilitatorAuth): Settler {
  const endpoint = new URL(`${url.replace(/\/$/, "")}/settle`);
  return {
    listsBy: "extensions",
    async submit(payment) {
      const paymentPayload = payloadOf(payment);
      const response = await fetch(endpoint, {
        method: "POST",
        redirect: "error",
        headers: { "content-type": "application/json", ...(await logIn(auth, endpoint)) },
        body: JSON.stringify({ x402Version: 2, paymentPayload, paymentRequirements: paymentPayload.accepted }),
        signal: AbortSignal.timeout(MINED_WITHIN_MS),
      });
      await discard(response);
      if (!response.ok) throw new Error(`the facilitator returned status ${response.status}${hint(response.status)}`);
    },
    // A remote facilitator pays for its own transactions.
    failed: async () => null,
  };
}

const TOKEN_SECONDS = 120;

/** Returns the request headers that authenticate one `POST` to a facilitator; empty without `auth`. */
async function logIn(auth: FacilitatorAuth | undefined, endpoint: URL): Promise<Record<string, string>> {
  if (auth === undefined) return {};
  switch (auth.type) {
    case "header":
      return { [auth.name]: auth.value };
    case "cdp":
      return { authorization: `Bearer ${await cdpToken(auth, endpoint)}` };
    default:
      return auth satisfies never;
  }
}

/** Returns a token for one endpoint, as the Coinbase Developer Platform defines it. */
function cdpToken(
  { keyId, privateKey }: Extract<FacilitatorAuth, { type: "cdp" }>,
  { host, pathname }: URL,
): Promise<string> {
  const now = Math.floor(Date.now() / 1000);
  return new SignJWT({ sub: keyId, iss: "cdp", uris: [`POST ${host}${pathname}`] })
    .setProtectedHeader({ alg: "EdDSA", kid: keyId, typ: "JWT", nonce: randomBytes(16).toString("hex") })
    .setIssuedAt(now)
    .setNotBefore(now)
    .setExpirationTime(now + TOKEN_SECONDS)
    .sign(privateKey);
}

const hint = (status: number): string => (status === 401 || status === 403 ? "; check FACILITATOR_AUTH" : "");

async function discard(response: Response): Promise<void> {
  let bytes = 0;
  for await (const chunk of response.body ?? []) {
    bytes += (chunk as Uint8Array).length;
    if (bytes > MAX_ANSWER_BYTES) break;
  }
}
