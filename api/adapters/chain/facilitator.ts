import { x402Facilitator } from "@x402/core/facilitator";
import type { PaymentPayload } from "@x402/core/types";
import { ExactEvmScheme } from "@x402/evm/exact/facilitator";
import { type Abi, encodeFunctionData, type PublicClient } from "viem";
import type { Network } from "../../kernel/networks.ts";
import { authorizationWire } from "../../payments/exact/authorization.ts";
import type { Settler } from "../../payments/exact/scheme.ts";
import { requirements } from "../../payments/exact/terms.ts";
import type { Relayer } from "./relayer.ts";
import { discreet } from "./rpc-errors.ts";

const TIMEOUT_MS = 15_000;
const MAX_ANSWER_BYTES = 64 * 1024;

type Submission = Parameters<Settler["submit"]>[0];

const payloadOf = ({ network, authorization, signature, resource }: Submission): PaymentPayload => ({
  x402Version: 2,
  resource: { url: resource, description: "", mimeType: "application/json" },
  accepted: requirements({ network, payTo: authorization.to, value: authorization.value }),
  payload: { authorization: authorizationWire(authorization), signature },
});

/** The in-process x402 facilitator; its transactions go through the relayer of their network. */
export function createInProcessSettler(
  parts: Readonly<Record<Network, { readonly client: PublicClient; readonly relayer: Relayer }>>,
): Settler {
  const facilitator = new x402Facilitator();
  for (const [network, { client, relayer }] of Object.entries(parts)) {
    facilitator.register(network as Network, new ExactEvmScheme(signerOf(client, relayer)));
  }
  return {
    submit: discreet(async (payment) => {
      const payload = payloadOf(payment);
      const settled = await facilitator.settle(payload, payload.accepted);
      if (!settled.success) throw new Error(`settlement failed: ${settled.errorReason ?? "no reason given"}`);
    }),
  };
}

type FacilitatorSigner = ConstructorParameters<typeof ExactEvmScheme>[0];

function signerOf(client: PublicClient, relayer: Relayer): FacilitatorSigner {
  return {
    getAddresses: () => [relayer.address],
    getCode: (args) => client.getCode(args),
    readContract: (args) => client.readContract({ ...args, abi: args.abi as Abi }),
    verifyTypedData: (args) => client.verifyTypedData(args as Parameters<PublicClient["verifyTypedData"]>[0]),
    writeContract: ({ address, abi, functionName, args }) =>
      relayer.send({ to: address, data: encodeFunctionData({ abi: abi as Abi, functionName, args }) }),
    sendTransaction: ({ to, data }) => relayer.send({ to, data }),
    waitForTransactionReceipt: ({ hash, timeout }) => relayer.waitFor(hash, timeout ?? TIMEOUT_MS),
  };
}

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
        signal: AbortSignal.timeout(TIMEOUT_MS),
      });
      await discard(response);
      if (!response.ok) throw new Error(`the facilitator returned status ${response.status}`);
    },
  };
}

async function discard(response: Response): Promise<void> {
  let bytes = 0;
  for await (const chunk of response.body ?? []) {
    bytes += (chunk as Uint8Array).length;
    if (bytes > MAX_ANSWER_BYTES) break;
  }
}
