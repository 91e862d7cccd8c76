import { type Address, type Hex, keccak256, parseAbi, toHex, zeroAddress } from "viem";
import { attest } from "../../../api/arbiter/attestation.ts";
import { createAccount } from "../../../api/platform/chain/accounts.ts";
import { dealRefOf, encodeEvaluate, evaluatorOf, jobTerms } from "../../../packages/escrow/src/evaluator.ts";
import { devAccount } from "../../../scripts/embedded/dev-accounts.ts";
import { deployContract } from "../../support/chain/contracts.ts";
import { onLocalBase, type UsdcChain } from "../../support/chain/usdc-chain.ts";

/** The gas limit of a verdict that completes an ERC-8183 job of our job contract. */
export const EVALUATIONS = {
  "the first verdict under its terms": 165_170,
  "a later one": 106_494,
} as const;
export type EvaluatorGas = Readonly<Record<keyof typeof EVALUATIONS, number>>;

const JOBS = parseAbi([
  "function createJob(address provider, address evaluator, uint256 expiredAt, string description, address hook) returns (uint256 jobId)",
  "function setBudget(uint256 jobId, uint256 amount, bytes optParams)",
  "function fund(uint256 jobId, uint256 expectedBudget, bytes optParams)",
  "function submit(uint256 jobId, bytes32 deliverable, bytes optParams)",
]);
const APPROVE = parseAbi(["function approve(address spender, uint256 value) returns (bool)"]);
const ARBITER = createAccount(keccak256(toHex("the arbiter of the gas measurement")));
const [CLIENT, PROVIDER, CARRIER] = [devAccount(1).address, devAccount(2).address, devAccount(3).address];
const HUNDRED_USD = 100_000_000n;
const GAS = 2_000_000n;

/** Measures with cold storage and 100 USDC. The provider and the job contract keep some USDC. */
export const measureEvaluator = (): Promise<EvaluatorGas> =>
  onLocalBase(async (chain) => {
    const complete = await jobsOn(chain);
    return { "the first verdict under its terms": await complete(0n), "a later one": await complete(1n) };
  });

/** Returns a function that completes another job under the same terms and returns its gas. */
async function jobsOn({ client, network, fund }: UsdcChain): Promise<(jobId: bigint) => Promise<number>> {
  const mined = async (hash: Promise<Hex>) => client.waitForTransactionReceipt({ hash: await hash });
  const { address: maker } = await deployContract(client, CARRIER, ["ArbiterEvaluator", ARBITER.address, PROVIDER]);
  const { address: jobs } = await deployContract(client, CARRIER, ["Jobs", network.usdc.address]);
  const send = (account: Address, functionName: "createJob" | "setBudget" | "fund" | "submit", args: unknown[]) =>
    mined(
      client.writeContract({ account, chain: null, address: jobs, abi: JOBS, functionName, args, gas: GAS } as never),
    );
  for (const account of [jobs, PROVIDER]) await fund(account, 1n);
  await fund(CLIENT, 2n * HUNDRED_USD);
  const allowed = { account: CLIENT, chain: null, address: network.usdc.address, abi: APPROVE } as const;
  await mined(client.writeContract({ ...allowed, functionName: "approve", args: [jobs, 2n * HUNDRED_USD] }));
  const now = Number((await client.getBlock()).timestamp);
  const expiredAt = now + 7_200;
  const terms = jobTerms("c0".repeat(32), { deliverBy: now, rejectFrom: now, expiredAt });
  const evaluator = evaluatorOf(maker, terms);
  return async (jobId) => {
    await send(CLIENT, "createJob", [PROVIDER, evaluator, expiredAt, "a haiku", zeroAddress]);
    await send(CLIENT, "setBudget", [jobId, HUNDRED_USD, "0x"]);
    await send(CLIENT, "fund", [jobId, HUNDRED_USD, "0x"]);
    await send(PROVIDER, "submit", [jobId, terms.conditionsSha256, "0x"]);
    const dealRef = dealRefOf({ chainId: network.chainId, evaluator, jobs, jobId });
    const facts = { id: "1".repeat(32), outcome: "release", conditionsSha256: "c0".repeat(32), dealRef } as const;
    const attestation = await attest({ ...facts, issuedAt: new Date(now * 1_000) }, network.chainId, ARBITER);
    const evaluation = { maker, chainId: network.chainId, terms, jobs, jobId, verdict: { attestation } };
    const data = encodeEvaluate(evaluation, now);
    const { gasUsed, status } = await mined(
      client.sendTransaction({ account: CARRIER, chain: null, to: maker, data, gas: GAS }),
    );
    if (status !== "success") throw new Error(`The verdict on job ${jobId} was refused.`);
    return Number(gasUsed);
  };
}
