import { x402Facilitator } from "@x402/core/facilitator";
import type { FacilitatorClient } from "@x402/core/server";
import { ExactEvmScheme } from "@x402/evm/exact/facilitator";
import { createWalletClient, http, publicActions } from "viem";
import { devAccount } from "../../../scripts/embedded/dev-accounts.ts";
import type { TestChain } from "../chain/chain.ts";

/** The stock facilitator of `@x402/evm`, in this process, which settles on the test's chain. */
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
  const scheme = new ExactEvmScheme(signer as unknown as ConstructorParameters<typeof ExactEvmScheme>[0]);
  const facilitator = new x402Facilitator().register(chain.network.id, scheme);
  // One after the other: two at once would get the same nonce.
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
