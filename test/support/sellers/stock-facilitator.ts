import { json } from "node:stream/consumers";
import { x402Facilitator } from "@x402/core/facilitator";
import type { FacilitatorClient } from "@x402/core/server";
import { ExactEvmScheme } from "@x402/evm/exact/facilitator";
import { ExactEvmSchemeV1 } from "@x402/evm/exact/v1/facilitator";
import { createWalletClient, http, publicActions } from "viem";
import { devAccount } from "../../../scripts/embedded/dev-accounts.ts";
import type { TestChain } from "../chain/chain.ts";
import { type LocalServer, serveHttp } from "../http-server.ts";

/** Base's name in version 1, which version 2's types do not include. */
const BASE_V1 = "base" as unknown as `${string}:${string}`;

/** The stock facilitator of `@x402/evm` in this process. It settles on the test's chain. */
export function stockFacilitator(chain: TestChain): FacilitatorClient {
  const account = devAccount(2);
  const transport = http(chain.rpcUrl);
  const client = createWalletClient({
    account,
    chain: chain.client.chain,
    transport,
    pollingInterval: 20,
    cacheTime: 0,
  });
  const signer = { ...client.extend(publicActions), getAddresses: () => [account.address] };
  const signing = signer as unknown as ConstructorParameters<typeof ExactEvmScheme>[0];
  const facilitator = new x402Facilitator()
    .register(chain.network.id, new ExactEvmScheme(signing))
    .registerV1(BASE_V1, new ExactEvmSchemeV1(signing));
  // Settles one payment at a time, because simultaneous ones would get the same nonce.
  let last: Promise<unknown> = Promise.resolve();
  return {
    verify: (payload, requirements) => facilitator.verify(payload, requirements),
    settle(payload, requirements) {
      const settling = last.then(() => facilitator.settle(payload, requirements));
      last = settling.catch(() => undefined);
      return settling;
    },
    getSupported: async () => facilitator.getSupported() as Awaited<ReturnType<FacilitatorClient["getSupported"]>>,
  };
}

/** The same over HTTP, for sellers in other processes. */
export function serveFacilitator(chain: TestChain): Promise<LocalServer> {
  const facilitator = stockFacilitator(chain);
  return serveHttp(async (request, response) => {
    const answered = async () => {
      if (request.url === "/supported") return facilitator.getSupported();
      const { paymentPayload, paymentRequirements } = (await json(request)) as Sent;
      return request.url === "/verify"
        ? facilitator.verify(paymentPayload, paymentRequirements)
        : facilitator.settle(paymentPayload, paymentRequirements);
    };
    response.setHeader("content-type", "application/json");
    await answered().then(
      (answer) => response.end(JSON.stringify(answer)),
      (error: Error) => response.writeHead(400).end(JSON.stringify({ error: error.message })),
    );
  });
}

interface Sent {
  readonly paymentPayload: Parameters<FacilitatorClient["settle"]>[0];
  readonly paymentRequirements: Parameters<FacilitatorClient["settle"]>[1];
}
