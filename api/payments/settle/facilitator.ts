import type { PaymentPayload } from "@x402/core/types";
import { NETWORKS, type Network } from "../../platform/networks.ts";
import { authorizationDigest, authorizationWire } from "../schemes/exact/authorization.ts";
import type { Settler } from "../schemes/exact/scheme.ts";
import { requirements } from "../schemes/exact/terms.ts";
import type { Batching } from "./batching.ts";
import type { Relayer } from "../../platform/relayer/relayer.ts";
import { discreet } from "../../platform/chain/rpc-errors.ts";
import { MINED_WITHIN_MS, settleAlone } from "./settle-alone.ts";
import { type CostCeiling, mostFeeFor } from "./simulation.ts";

const MAX_ANSWER_BYTES = 64 * 1024;

type Submission = Parameters<Settler["submit"]>[0];

/** Sends one network's payments. */
export interface Lanes {
  readonly relayer: Relayer;
  readonly batching: Batching;
  readonly ceiling: CostCeiling | null;
}

/** The in-process facilitator: each transfer goes through the relayer of its network, once, with others or alone. */
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

const payloadOf = ({ network, authorization, signature, resource }: Submission): PaymentPayload => ({
  x402Version: 2,
  resource: { url: resource, description: "", mimeType: "application/json" },
  accepted: requirements({ network, payTo: authorization.to, value: authorization.value }),
  payload: { authorization: authorizationWire(authorization), signature },
});

/**
 * A facilitator over HTTP. We make the call ourselves because the library's client follows redirects and reads answers
 * of any size. The answer is read up to a cap and discarded: it decides nothing.
 */
export function createRemoteSettler(url: string): Settler {
  const endpoint = `${url.replace(/\/$/, "")}/settle`;
  return {
    async submit(payment) {
      const paymentPayload = payloadOf(payment);
      const response = await fetch(endpoint, {
        method: "POST",
        redirect: "error",
        headers: { "content-type": "application/json" },
        body: JSON.stringify({ x402Version: 2, paymentPayload, paymentRequirements: paymentPayload.accepted }),
        signal: AbortSignal.timeout(MINED_WITHIN_MS),
      });
      await discard(response);
      if (!response.ok) throw new Error(`the facilitator returned status ${response.status}`);
    },
    // What it sends, it pays for.
    failed: async () => null,
  };
}

async function discard(response: Response): Promise<void> {
  let bytes = 0;
  for await (const chunk of response.body ?? []) {
    bytes += (chunk as Uint8Array).length;
    if (bytes > MAX_ANSWER_BYTES) break;
  }
}
