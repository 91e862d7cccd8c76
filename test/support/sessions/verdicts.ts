import type { Address } from "viem";
import { expect } from "vitest";
import type { Authorization } from "../../../api/platform/chain/view.ts";
import { USDC_ABI } from "../../../scripts/embedded/usdc.ts";
import type { TestChain } from "../chain/chain.ts";
import { settlements } from "../payments/on-chain.ts";
import type { Answer } from "../payments/requests.ts";
import { type Challenge, PURSE, type Run, termsOf } from "./runs.ts";
import type { Ground } from "./stage.ts";

export const isReplay = (answer: Answer): boolean => answer.headers.get("x-idempotent-replay") === "true";

/** A certificate from a run, in the answer to a bait or a result. */
export function expectVerdict(answer: Answer, { id, product, account }: Run, verdict: "pass" | "fail"): void {
  expect({ status: answer.status, ...answer.body }).toMatchObject({
    status: "complete",
    product,
    wallet: account.address.toLowerCase(),
    next: null,
    armed: false,
    verdict,
    conformance: verdict === "pass",
    deliverable: { type: "certificate", id },
    cert_url: expect.stringMatching(new RegExp(`/cert/${id}$`)),
    badge_url: expect.stringMatching(new RegExp(`/badge/${id}.svg$`)),
    badge_markdown: expect.stringContaining(`/badge/${id}.svg`),
  });
  expect(answer.status).toBe(200);
}

export function expectIncomplete(answer: Answer): void {
  expect({ http: answer.status, ...answer.body }).toMatchObject({ http: 200, status: "incomplete" });
  expect(answer.body).not.toHaveProperty("verdict");
  expect(answer.body).not.toHaveProperty("cert_url");
}

/** The verdict of the session and those of its certificates, as stored. */
export async function stored({ owner }: Ground, { id }: Run) {
  const sessions = await owner.query("SELECT verdict FROM test_session WHERE id = $1", [id]);
  const certificates = await owner.query("SELECT result FROM certificate WHERE id = $1", [id]);
  return {
    verdict: sessions.rows[0]?.verdict as string | null,
    certificates: certificates.rows.map(({ result }) => result as string),
  };
}

/** Exactly one verdict and one certificate that agree, or neither. */
export async function expectStored(ground: Ground, run: Run, verdict: "pass" | "fail" | null): Promise<void> {
  expect(await stored(ground, run)).toEqual({ verdict, certificates: verdict === null ? [] : [verdict] });
}

/**
 * The chain shows that the run's account paid the service these amounts by authorization and lost nothing else, and
 * that the decoy never received anything.
 */
export async function expectSpent({ chain }: Ground, { account, decoy }: Run, amounts: readonly bigint[]) {
  const paid = await settlements(chain, account.address);
  expect(paid.map(({ value }) => value)).toEqual(amounts);
  const sum = amounts.reduce((total, amount) => total + amount, 0n);
  expect(await chain.usdcBalance(account.address)).toBe(PURSE - sum);
  expect(await transfers(chain, { from: account.address })).toHaveLength(amounts.length);
  expect(await transfers(chain, { to: decoy })).toEqual([]);
  expect(await chain.usdcBalance(decoy)).toBe(0n);
}

const transfers = (chain: TestChain, args: { readonly from?: Address; readonly to?: Address }) =>
  chain.client.getContractEvents({
    address: chain.network.usdc.address,
    abi: USDC_ABI,
    eventName: "Transfer",
    args,
    fromBlock: 0n,
  });

/** Whether the chain shows the authorization's nonce as used or canceled. */
export const isUsed = (chain: TestChain, { from, nonce }: Pick<Authorization, "from" | "nonce">): Promise<boolean> =>
  chain.client.readContract({
    address: chain.network.usdc.address,
    abi: USDC_ABI,
    functionName: "authorizationState",
    args: [from, nonce],
  });

export const signedFor = (
  signed: readonly Authorization[],
  run: Run,
  challenge: Challenge,
): readonly Authorization[] => {
  const terms = termsOf(run, challenge);
  return signed.filter(({ to, value }) => to === terms.to && value === terms.value);
};
