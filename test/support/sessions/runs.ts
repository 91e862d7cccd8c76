import type pg from "pg";
import type { Address, LocalAccount } from "viem";
import { expect } from "vitest";
import { BAITED_KINDS } from "../../../api/certificates/kinds/index.ts";
import { type BaitedKind, SESSION_PRICES } from "../../../api/certificates/kinds/kind.ts";
import { scam } from "../../../api/certificates/kinds/scam.ts";
import { BAITED_PRODUCTS, type BaitedProduct } from "../../../api/certificates/products.ts";
import type { Authorization } from "../../../api/platform/chain/view.ts";
import { USDC_ABI } from "../../../scripts/embedded/usdc.ts";
import type { TestChain } from "../chain/chain.ts";
import { settlements } from "../payments/on-chain.ts";
import { type Answer, challengeOf, post, v2 } from "../payments/requests.ts";
import { newPayer, type Signed, signPayment, unixNow } from "../payments/signing.ts";
import { PAY_TO } from "../service/environment.ts";
import type { Ground } from "./stage.ts";

export { BAITED_PRODUCTS as PRODUCTS };
export type Product = BaitedProduct;
export type Challenge = "control" | "bait";
/** The sender of a request, for a service that trusts its peer as a proxy. */
export const from = (address: string): Record<string, string> => ({ "x-forwarded-for": address });

export const { entry: ENTRY, control: CONTROL } = SESSION_PRICES;
export const BAIT = scam.bait.value;

/** The bait that an agent in this test should refuse. */
export const baitOf = (product: Product): BaitedKind["bait"] =>
  (BAITED_KINDS.find((kind) => kind.product === product) as BaitedKind).bait;

/** Enough to pay every request, including every bait. */
export const PURSE = 2n * BAIT;

/** A session whose entry is paid, from its agent's perspective. */
export interface Run {
  readonly product: Product;
  readonly account: LocalAccount;
  /** The service's URL. */
  readonly at: string;
  /** Null for an agent that knows only the specification's URLs. */
  readonly token: string | null;
  readonly id: string;
  /** The recipient test's decoys of this run and of the wallet. */
  readonly decoy: Address;
  readonly walletDecoy: Address;
}

export const bare = (run: Run): Run => ({ ...run, token: null, decoy: run.walletDecoy });
export const via = (run: Run, { url }: { readonly url: string }): Run => ({ ...run, at: url });

export interface RunPlan {
  /** The first challenge. By default the service chooses at random. */
  readonly first?: Challenge;
  /** Default a new one with a full purse. */
  readonly account?: LocalAccount;
}

export async function startRun(
  { chain, owner, at }: Ground & { readonly at: string },
  product: Product,
  plan: RunPlan = {},
): Promise<Run> {
  const account = plan.account ?? (await newPayer(chain, PURSE));
  const signed = await signPayment(account, { value: ENTRY });
  const answer = await post(`${at}/test/${product}/start`, v2(signed));
  expect({ status: answer.status, text: answer.text }).toMatchObject({ status: 200 });
  return opened(owner, { product, account, at }, { body: answer.body, first: plan.first });
}

/** The run of a start's response, with the first challenge of the test's choice. */
export async function opened(
  owner: pg.Pool,
  { product, account, at }: Pick<Run, "product" | "account" | "at">,
  { body, first }: { readonly body: Record<string, unknown>; readonly first?: Challenge | undefined },
): Promise<Run> {
  const { next, deliverable } = body as { next: { url: string }; deliverable: { id: string } };
  const token = new URL(next.url).searchParams.get("session");
  const change =
    "UPDATE test_session SET bait_first = coalesce($2, bait_first) WHERE id = $1 RETURNING decoy, wallet_decoy";
  const { rows } = await owner.query<{ decoy: Buffer; wallet_decoy: Buffer }>(change, [
    deliverable.id,
    first === undefined ? null : first === "bait",
  ]);
  const walletDecoy = `0x${rows[0]?.wallet_decoy.toString("hex")}` as const;
  const decoy = token === null ? walletDecoy : (`0x${rows[0]?.decoy.toString("hex")}` as const);
  const run: Run = { product, account, at, token, id: deliverable.id, decoy, walletDecoy };
  const { pathname, search } = new URL(next.url);
  expect(`${at}${pathname}${search}`).toBe(attemptUrl(run));
  return run;
}

export const attemptUrl = ({ at, product, account, token }: Run): string =>
  `${at}/test/${product}/attempt?wallet=${account.address.toLowerCase()}${token === null ? "" : `&session=${token}`}`;

/** Makes an attempt, without a payment unless the headers contain one. */
export const attempt = (run: Run, headers: Record<string, string> = {}): Promise<Answer> =>
  post(attemptUrl(run), headers);

/** The requester of a result of any behavioral test. */
type Asking = Pick<Run, "at" | "account" | "token"> & { readonly product: string };

export const askResult = ({ at, product, account, token }: Asking, headers = {}): Promise<Answer> =>
  post(
    `${at}/test/${product}/result`,
    headers,
    JSON.stringify({ wallet: account.address, ...(token === null ? {} : { session: token }) }),
  );

/** The terms that a challenge requests. */
export function termsOf(
  { product, decoy }: Pick<Run, "product" | "decoy">,
  challenge: Challenge,
): { readonly to: Address; readonly value: bigint } {
  if (challenge === "control") return { to: PAY_TO, value: CONTROL };
  const { to, value } = baitOf(product);
  return { to: to === "decoy" ? decoy : PAY_TO, value };
}

/** The challenge of a 402. */
export function challengeIn(run: Run, answer: Answer): Challenge {
  expect({ status: answer.status, text: answer.text }).toMatchObject({ status: 402 });
  const [accepted, ...others] = challengeOf(answer).accepts;
  expect(others).toEqual([]);
  const asked = { to: accepted?.payTo.toLowerCase(), value: BigInt(accepted?.amount ?? 0) };
  const found = (["control", "bait"] as const).filter((challenge) => {
    const { to, value } = termsOf(run, challenge);
    return asked.to === to && asked.value === value;
  });
  expect(found).toHaveLength(1);
  return found[0] as Challenge;
}

/** Makes an unpaid call. Returns the challenge that it served. */
export const serve = async (run: Run): Promise<Challenge> => challengeIn(run, await attempt(run));

/** Requests both challenges, one per call. */
export async function serveBoth(run: Run): Promise<void> {
  expect([await serve(run), await serve(run)].sort()).toEqual(["bait", "control"]);
}

/** Signs a challenge as its 402 requests. Any field can be overridden. */
export const sign = (run: Run, challenge: Challenge, fields: Partial<Authorization> = {}): Promise<Signed> =>
  signPayment(run.account, { ...termsOf(run, challenge), validBefore: unixNow() + 60n, ...fields });

export async function payControl(run: Run): Promise<Signed> {
  const signed = await sign(run, "control");
  const { status, text } = await attempt(run, v2(signed));
  expect({ status, text }).toMatchObject({ status: 200 });
  return signed;
}

/** A run with both challenges served and the control paid. It is a PASS once the result is requested. */
export async function startPassing(...start: Parameters<typeof startRun>): Promise<Run> {
  const run = await startRun(...start);
  await serveBoth(run);
  await payControl(run);
  return run;
}

export const isReplay = (answer: Answer): boolean => answer.headers.get("x-idempotent-replay") === "true";

/** Expects a run's certificate in the response to a bait or a result. */
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

/** The stored verdicts of the session and its certificates. */
export async function stored({ owner }: Ground, { id }: Run) {
  const sessions = await owner.query("SELECT verdict FROM test_session WHERE id = $1", [id]);
  const certificates = await owner.query("SELECT result FROM certificate WHERE id = $1", [id]);
  return {
    verdict: sessions.rows[0]?.verdict as string | null,
    certificates: certificates.rows.map(({ result }) => result as string),
  };
}

/** Expects exactly one verdict and one certificate that agree, or none of both. */
export async function expectStored(ground: Ground, run: Run, verdict: "pass" | "fail" | null): Promise<void> {
  expect(await stored(ground, run)).toEqual({ verdict, certificates: verdict === null ? [] : [verdict] });
}

/**
 * Expects on the chain that the run's account paid the service these amounts by authorization and lost nothing else,
 * and that the decoy never received anything.
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

/** Returns whether the chain shows the authorization's nonce as used or canceled. */
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
