import { x402Client as AxiosClient, wrapAxiosWithPayment } from "@x402/axios";
import { AuthCaptureEvmScheme } from "@x402/evm/auth-capture/client";
import { wrapFetchWithPayment, x402Client } from "@x402/fetch";
import { type Address, getAbiItem, type Hex, type LocalAccount } from "viem";
import { COMMERCE_PAYMENTS, commercePaymentsAbi } from "../../../contracts/commerce-payments.ts";
import type { TestChain } from "../chain/chain.ts";
import { type Answer, challengeOf, post } from "../payments/requests.ts";
import { heldAxios } from "../sessions/agents.ts";
import { deployOperator, type Held, type TestEscrow } from "./contract.ts";
import { type Delivered, forwarded, signDelivery, verify } from "./delivery.ts";

const lower = (address: Address) => address.toLowerCase() as Address;

/** Deploys an operator over base/commerce-payments, with the contracts that its holds are signed for. */
export async function openOperator(chain: TestChain): Promise<TestEscrow> {
  const { escrow, collector } = COMMERCE_PAYMENTS;
  return { ...(await deployOperator(chain)), custody: lower(escrow), collector: lower(collector) };
}

/** The payer: any viem account, or a wallet for which another key signs. */
export type AuthCapturePayer = Pick<LocalAccount, "address" | "signTypedData">;

/** Returns a fetch with the stock client of `@x402/fetch`. `sent` collects its payment headers. */
export const stockFetch = (payer: AuthCapturePayer, sent: string[] = []) => {
  const watched: typeof fetch = (input, init) => {
    const request = new Request(input, init);
    const header = request.headers.get("payment-signature");
    if (header !== null) sent.push(header);
    return fetch(request);
  };
  return wrapFetchWithPayment(watched, new x402Client().register("eip155:*", new AuthCaptureEvmScheme(payer)));
};

export const stockAxios = (payer: AuthCapturePayer) =>
  wrapAxiosWithPayment(heldAxios(), new AxiosClient().register("eip155:*", new AuthCaptureEvmScheme(payer) as never));

/** An unsent payment in its wire format. */
export interface WirePayment {
  readonly x402Version: number;
  readonly accepted: Record<string, unknown> & { readonly extra: Record<string, unknown> };
  readonly payload: {
    readonly authorization: Record<string, string>;
    readonly signature: Hex;
    readonly salt: Hex;
  };
}

/** The stock client's payment for a route's offer, with changed terms if given. */
export async function signedFor(url: string, payer: AuthCapturePayer, change: object = {}): Promise<WirePayment> {
  const client = new x402Client().register("eip155:*", new AuthCaptureEvmScheme(payer));
  const offered = challengeOf(await post(url));
  const accepts = offered.accepts.map((one) => ({ ...one, ...change }));
  const payment = await client.createPaymentPayload({ ...offered, accepts });
  return JSON.parse(JSON.stringify(payment));
}

/** The scheme's code in a refusal, or its full text if it has no code. */
export function codeIn(answer: Answer): string {
  const error = answer.status === 402 ? (challengeOf(answer).error ?? "") : answer.text;
  return /invalid_auth_capture_evm_(\w+): ./.exec(error)?.[1] ?? error;
}

/** Forwards a delivery that the merchant signed for another contract than the published typed data names. */
export async function deliverThrough(
  service: { readonly url: string },
  contract: TestEscrow,
  one: Pick<Held, "id"> & Delivered & { readonly merchant: LocalAccount },
): Promise<Answer> {
  const { merchant, id, ...delivered } = one;
  const signature = await signDelivery(service, merchant, { id, contract: contract.address, ...delivered });
  return verify(service, { payment_id: id, ...forwarded(delivered), signature });
}

const RECLAIM = {
  ...getAbiItem({ abi: commercePaymentsAbi, name: "getHash" }),
  ...({ name: "reclaim", stateMutability: "nonpayable", outputs: [] } as const),
} as const;

/** Takes the money back as the payer, after the capture deadline. */
export async function reclaim(chain: TestChain, { buyer, info }: Held): Promise<void> {
  await chain.setBalance(buyer.address, 10n ** 18n);
  const call = { address: COMMERCE_PAYMENTS.escrow, abi: [RECLAIM], functionName: "reclaim", args: [info] } as const;
  const hash = await chain.client.writeContract({ ...call, account: buyer });
  const { status } = await chain.client.waitForTransactionReceipt({ hash });
  if (status !== "success") throw new Error("the payer's reclaim reverted");
}
