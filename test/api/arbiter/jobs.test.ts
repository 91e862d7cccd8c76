import canonicalize from "canonicalize";
import { type Address, type Hex, hashTypedData, parseAbi, parseEventLogs, zeroAddress } from "viem";
import { privateKeyToAddress } from "viem/accounts";
import { describe, expect, test } from "vitest";
import { requireEvaluator } from "../../../api/arbiter/chain.ts";
import type { verdictDocument } from "../../../api/arbiter/document.ts";
import {
  dealRefOf,
  encodeEvaluate,
  evaluatorAbi,
  evaluatorOf,
  type JobTerms,
  jobTerms,
} from "../../../packages/escrow/src/index.ts";
import { devAccount } from "../../../scripts/embedded/dev-accounts.ts";
import { sha256 } from "../../support/arbiter/rows.ts";
import { buyVerdict, recordOf, startArbiterScene } from "../../support/arbiter/scene.ts";
import { startTestChain } from "../../support/chain/chain.ts";
import { deployContract } from "../../support/chain/contracts.ts";
import { forFile } from "../../support/for-file.ts";
import { ARBITER_KEY } from "../../support/service/environment.ts";

type VerdictDocument = ReturnType<typeof verdictDocument>;

/** The parts of ERC-8183 that a client and a provider need. */
const JOBS_ABI = parseAbi([
  "constructor(address token)",
  "function createJob(address provider, address evaluator, uint256 expiredAt, string description, address hook) returns (uint256 jobId)",
  "function setBudget(uint256 jobId, uint256 amount, bytes optParams)",
  "function fund(uint256 jobId, uint256 expectedBudget, bytes optParams)",
  "function submit(uint256 jobId, bytes32 deliverable, bytes optParams)",
  "function claimRefund(uint256 jobId)",
  "function statusOf(uint256 jobId) view returns (uint8)",
  "event JobCreated(uint256 indexed jobId, address indexed client, address indexed evaluator, string description)",
  "event JobCompleted(uint256 indexed jobId, bytes32 reason)",
  "event JobRejected(uint256 indexed jobId, address indexed rejector, bytes32 reason)",
]);
/** The job contract's own errors pass through the evaluator. */
const REFUSALS = [...evaluatorAbi, ...parseAbi(["error WrongStatus(uint256 jobId, uint8 got)"])];
const APPROVE = parseAbi(["function approve(address spender, uint256 value) returns (bool)"]);
const [CLIENT, PROVIDER, CARRIER] = [devAccount(5), devAccount(6), devAccount(7)];
const FEES: Address = "0x00000000000000000000000000000000c0ffee01";
const BUDGET = 2_000_000n;
const [COMPLETED, REJECTED] = [4, 5];
const TWO_HOURS = 7_200;

const chain = await startTestChain();
const { client, network } = chain;
const now = async () => Number((await client.getBlock()).timestamp);

const mined = async (hash: Promise<Hex>) => client.waitForTransactionReceipt({ hash: await hash });
const deploy = async (name: string, args: readonly unknown[]): Promise<Address> =>
  (await deployContract(client, CARRIER, [name, ...args])).address;
const evaluatorAddress = await deploy("ArbiterEvaluator", [privateKeyToAddress(ARBITER_KEY), FEES]);
const scene = await forFile(startArbiterScene({ chain, config: { evaluatorAddress } }));
const published = await recordOf(`${scene.service.url}/arbiter`);
const maker = (published.body.jobs as { readonly address: Address }).address;
const jobs = await deploy("Jobs", [network.usdc.address]);
const onJobs = { address: jobs, abi: JOBS_ABI, chain: null } as const;

interface Sold {
  readonly jobId: bigint;
  readonly terms: JobTerms;
  readonly claim: { readonly category: string; readonly conditions: object; readonly deal_ref: Hex };
}

/** Creates, funds, and submits a job for the page at this path. */
async function submitJob(path: string): Promise<Sold> {
  const claim = { category: "http-delivery", conditions: { url: `${scene.shop}${path}`, expect_status: 200 } };
  // The service's clock dates verdicts, and the chain's clock may be ahead of it.
  const rejectFrom = Math.min(await now(), Math.floor(Date.now() / 1_000)) - 60;
  const times = { deliverBy: rejectFrom, rejectFrom, expiredAt: rejectFrom + TWO_HOURS };
  const terms = jobTerms(sha256(canonicalize(claim) ?? ""), times);
  const evaluator = evaluatorOf(maker, terms);
  const create = client.writeContract({
    ...onJobs,
    account: CLIENT,
    functionName: "createJob",
    args: [PROVIDER.address, evaluator, BigInt(times.expiredAt), JSON.stringify(claim), zeroAddress],
  });
  const [created] = parseEventLogs({ abi: JOBS_ABI, eventName: "JobCreated", logs: (await mined(create)).logs });
  const jobId = created?.args.jobId ?? -1n;
  const approval = { address: network.usdc.address, abi: APPROVE, functionName: "approve", chain: null } as const;
  await mined(client.writeContract({ ...approval, account: CLIENT, args: [jobs, BUDGET] }));
  const budget = [jobId, BUDGET, "0x"] as const;
  await mined(client.writeContract({ ...onJobs, account: CLIENT, functionName: "setBudget", args: budget }));
  await mined(client.writeContract({ ...onJobs, account: CLIENT, functionName: "fund", args: budget }));
  const args = [jobId, `0x${"de".repeat(32)}`, "0x"] as const;
  await mined(client.writeContract({ ...onJobs, account: PROVIDER, functionName: "submit", args }));
  const deal_ref = dealRefOf({ chainId: network.chainId, evaluator, jobs, jobId });
  return { jobId, terms, claim: { ...claim, deal_ref } };
}

const buy = async ({ claim }: Pick<Sold, "claim">): Promise<VerdictDocument> => {
  const { answer } = await buyVerdict(scene.service, PROVIDER, claim as never);
  expect(answer.status).toBe(200);
  return answer.body as unknown as VerdictDocument;
};
const evaluation = ({ jobId, terms }: Sold, verdict: VerdictDocument) =>
  ({ maker, chainId: network.chainId, terms, jobs, jobId, verdict }) as const;
const bring = async (sold: Sold, verdict: VerdictDocument) =>
  mined(client.sendTransaction({ account: CARRIER, to: maker, data: encodeEvaluate(evaluation(sold, verdict)) }));
const statusOf = ({ jobId }: Sold) => client.readContract({ ...onJobs, functionName: "statusOf", args: [jobId] });

/** Returns the contract's error for a verdict that the package's encoder would reject. */
async function refusal({ jobId, terms }: Sold, { attestation }: VerdictDocument): Promise<string> {
  const { message, signature } = attestation;
  const outcome = ["escalate", "release", "refund"].indexOf(message.outcome);
  const verdict = { ...message, outcome, issuedAt: BigInt(message.issuedAt) };
  const args = [{ ...terms, rejectFrom: BigInt(terms.rejectFrom) }, jobs, jobId, verdict, signature] as const;
  const call = { address: maker, abi: REFUSALS, functionName: "evaluate", account: CARRIER } as const;
  const error = await client.simulateContract({ ...call, args }).then(
    () => new Error("accepted"),
    (cause: Error) => cause,
  );
  return /Error: (\w+)\(/.exec(error.message)?.[1] ?? error.message;
}

/** Returns how much each side's balance grew. */
async function gains(work: () => Promise<unknown>): Promise<{ readonly client: bigint; readonly provider: bigint }> {
  const balances = () => Promise.all([CLIENT, PROVIDER].map(({ address }) => scene.chain.usdcBalance(address)));
  const [client = 0n, provider = 0n] = await balances();
  await work();
  const [clientNow = 0n, providerNow = 0n] = await balances();
  return { client: clientNow - client, provider: providerNow - provider };
}

const digestOf = ({ attestation: { domain, types, primaryType, message } }: VerdictDocument): Hex =>
  hashTypedData({ domain, types, primaryType, message: { ...message, issuedAt: BigInt(message.issuedAt) } } as never);

describe("job that names an evaluator of the arbiter", () => {
  test("Anyone can submit a bought release: the job completes, with the verdict's digest as its reason", async () => {
    const sold = await submitJob("/report");
    const verdict = await buy(sold);
    expect(verdict.verdict).toBe("release");
    let logs: Parameters<typeof parseEventLogs>[0]["logs"] = [];
    expect(await gains(async () => ({ logs } = await bring(sold, verdict)))).toEqual({ client: 0n, provider: BUDGET });
    expect(await statusOf(sold)).toBe(COMPLETED);
    const [completed] = parseEventLogs({ abi: JOBS_ABI, eventName: "JobCompleted", logs });
    expect(completed?.args).toEqual({ jobId: sold.jobId, reason: digestOf(verdict) });
    const [evaluated] = parseEventLogs({ abi: evaluatorAbi, eventName: "Evaluated", logs });
    expect(evaluated?.args).toMatchObject({ jobId: sold.jobId, isComplete: true, verdictId: verdict.id });
    expect(evaluated?.args.evaluator).toBe(evaluatorOf(maker, sold.terms));
  });

  test("A refund rejects the job from `rejectFrom` on and pays the client back", async () => {
    const sold = await submitJob("/gone");
    const verdict = await buy(sold);
    expect(verdict.verdict).toBe("refund");
    expect(await gains(() => bring(sold, verdict))).toEqual({ client: BUDGET, provider: 0n });
    expect(await statusOf(sold)).toBe(REJECTED);
    expect(await refusal(sold, verdict)).toBe("WrongStatus");
  });

  test("A service starts only with an evaluator contract that names its own arbiter", async () => {
    const arbiter = privateKeyToAddress(ARBITER_KEY);
    const other = await deploy("ArbiterEvaluator", [CARRIER.address, FEES]);
    await requireEvaluator(client as never, maker, arbiter);
    await expect(requireEvaluator(client as never, other, arbiter)).rejects.toThrow("ARBITER_PRIVATE_KEY belongs to");
    await expect(requireEvaluator(client as never, jobs, arbiter)).rejects.toThrow("EVALUATOR_ADDRESS is wrong");
  });
});
