import {
  type Address,
  concat,
  encodeAbiParameters,
  encodeFunctionData,
  getContractAddress,
  getCreate2Address,
  type Hex,
  keccak256,
  parseAbi,
  stringToBytes,
} from "viem";

/** The whole ABI of `ArbiterEvaluator`, with the errors of `VerdictLib` and of the evaluators themselves. */
export const evaluatorAbi = parseAbi([
  "struct Terms { bytes32 conditionsSha256; uint64 rejectFrom; }",
  "struct Verdict { string id; uint8 outcome; bytes32 conditionsSha256; bytes32 dealRefHash; uint64 issuedAt; }",
  "constructor(address arbiter, address feeRecipient)",
  "function evaluate(Terms terms, address jobs, uint256 jobId, Verdict verdict, bytes signature)",
  "function sweep(Terms terms, address token)",
  "function evaluatorOf(Terms terms) view returns (address)",
  "function dealRefOf(address evaluator, address jobs, uint256 jobId) view returns (string)",
  "function MAX_AGE() view returns (uint64)",
  "function ARBITER() view returns (address)",
  "function FEE_RECIPIENT() view returns (address)",
  "event Evaluated(address indexed jobs, uint256 indexed jobId, address indexed evaluator, bool isComplete, bytes32 reason, string verdictId)",
  "error ZeroAddress()",
  "error WrongConditions(bytes32 got, bytes32 wanted)",
  "error WrongDeal(bytes32 got, bytes32 wanted)",
  "error IssuedTooEarly(uint64 issuedAt, uint64 rejectFrom)",
  "error NothingDecided()",
  "error NotArbiter(address got, address wanted)",
  "error VerdictFromTheFuture(uint64 issuedAt, uint256 latest)",
  "error VerdictExpired(uint256 timestamp, uint256 expiry)",
]);

/** The terms that an evaluator's address commits to (`IArbiterEvaluator.Terms`). */
export interface JobTerms {
  /** The `conditions_sha256` of the claims: 32 bytes. */
  readonly conditionsSha256: Hex;
  /** Unix seconds. Only a refund verdict issued at this time or later rejects. */
  readonly rejectFrom: number;
}

/** The deadlines of an ERC-8183 job. Times are unix seconds. */
export interface JobTimes {
  /** The time by which the provider must have delivered. */
  readonly deliverBy: number;
  /** The time from which a refund verdict rejects the job. */
  readonly rejectFrom: number;
  /** The job's own `expiredAt`, after which the client is refunded. */
  readonly expiredAt: number;
}

/** One job of one contract on one chain, and the evaluator that it names. */
export interface JobPlace {
  readonly chainId: number;
  readonly evaluator: Address;
  readonly jobs: Address;
  readonly jobId: bigint;
}

/** The part of a bought verdict that a contract checks, from the response of `POST /arbiter/verify`. */
export interface AttestedVerdict {
  readonly attestation: {
    readonly message: {
      readonly id: string;
      readonly outcome: string;
      readonly conditionsSha256: Hex;
      readonly dealRefHash: Hex;
      /** Unix seconds. */
      readonly issuedAt: number;
    };
    readonly signature: Hex;
  };
}

/** A verdict, and the job to apply it to. */
export interface Evaluation {
  /** The address of `ArbiterEvaluator`. */
  readonly maker: Address;
  readonly chainId: number;
  readonly terms: JobTerms;
  readonly jobs: Address;
  readonly jobId: bigint;
  readonly verdict: AttestedVerdict;
}

/**
 * Thrown if the contract would refuse the verdict, or the verdict would decide nothing; `reason` is the contract's
 * error, as named in its ABI.
 */
export class VerdictRefused extends Error {
  readonly reason: string;

  constructor(reason: string, message: string) {
    super(message);
    this.name = "VerdictRefused";
    this.reason = reason;
  }
}

const HOUR_SECONDS = 3_600;
const DAY_SECONDS = 86_400;
/** `VerdictLib.Outcome`, in its order. */
const OUTCOMES = ["escalate", "release", "refund"];
const TERMS = [{ type: "bytes32" }, { type: "uint64" }] as const;
const JOB = [{ type: "uint256" }, { type: "address" }, { type: "address" }, { type: "uint256" }] as const;
/** A minimal proxy (ERC-1167) of the first contract that the maker created. */
const PROXY = ["0x3d602d80600a3d3981f3363d3d373d3d3d363d73", "0x5af43d82803e903d91602b57fd5bf3"] as const;

/**
 * Returns the terms of a job. Its times must be in order: delivery by `rejectFrom`, so that the job cannot be rejected
 * before it is late; and more than an hour from there to `expiredAt`, in which a verdict can be bought and mined.
 * @param conditionsSha256 as `conditions_sha256` in the arbiter's responses, or with 0x
 * @throws RangeError for times in another order, or another number of bytes
 */
export function jobTerms(conditionsSha256: string, { deliverBy, rejectFrom, expiredAt }: JobTimes): JobTerms {
  const hex = conditionsSha256.replace(/^0x/, "").toLowerCase();
  if (!/^[0-9a-f]{64}$/.test(hex)) throw new RangeError("conditionsSha256 must be a SHA-256: 64 hexadecimal digits.");
  if (![deliverBy, rejectFrom, expiredAt].every((time) => Number.isSafeInteger(time) && time > 0))
    throw new RangeError("deliverBy, rejectFrom and expiredAt must be Unix timestamps in seconds.");
  if (deliverBy > rejectFrom)
    throw new RangeError("deliverBy must not be after rejectFrom, or the job could be rejected before it is late.");
  if (rejectFrom + HOUR_SECONDS >= expiredAt)
    throw new RangeError("expiredAt must be more than an hour after rejectFrom, to leave time for a verdict.");
  return { conditionsSha256: `0x${hex}`, rejectFrom };
}

/**
 * Returns the evaluator to name in `createJob`: the address of the terms. It needs no code before its first verdict.
 * @param maker the address of `ArbiterEvaluator`
 */
export function evaluatorOf(maker: Address, { conditionsSha256, rejectFrom }: JobTerms): Address {
  const hand = getContractAddress({ from: maker, nonce: 1n });
  const salt = keccak256(encodeAbiParameters(TERMS, [conditionsSha256, BigInt(rejectFrom)]));
  return getCreate2Address({ from: maker, salt, bytecode: concat([PROXY[0], hand, PROXY[1]]) });
}

/** Returns the `deal_ref` of the claims about a job, unique to this job, contract, and chain. */
export const dealRefOf = ({ chainId, evaluator, jobs, jobId }: JobPlace): Hex =>
  keccak256(encodeAbiParameters(JOB, [BigInt(chainId), evaluator, jobs, jobId]));

/**
 * Returns the calldata of `ArbiterEvaluator.evaluate`, which anyone can send to `maker`: a release completes the job, a
 * refund rejects it.
 * @param now Unix seconds; the current time by default
 * @throws VerdictRefused for a verdict that the contract would refuse: about other conditions or another deal, older
 * than a day, a refund issued before `rejectFrom`, or an escalation, which decides nothing
 */
export function encodeEvaluate(
  { maker, chainId, terms, jobs, jobId, verdict }: Evaluation,
  now = Math.floor(Date.now() / 1000),
): Hex {
  const { message, signature } = verdict.attestation;
  const { id, conditionsSha256, dealRefHash, issuedAt } = message;
  if (conditionsSha256 !== terms.conditionsSha256)
    throw new VerdictRefused(
      "WrongConditions",
      `The verdict is about conditions ${conditionsSha256}; the job's are ${terms.conditionsSha256}.`,
    );
  const dealRef = dealRefOf({ chainId, evaluator: evaluatorOf(maker, terms), jobs, jobId });
  if (dealRefHash !== keccak256(stringToBytes(dealRef)))
    throw new VerdictRefused("WrongDeal", `The verdict is about another deal; the job's deal_ref is ${dealRef}.`);
  if (now > issuedAt + DAY_SECONDS)
    throw new VerdictRefused("VerdictExpired", "The verdict is older than a day. Buy a new one.");
  const outcome = OUTCOMES.indexOf(message.outcome);
  if (outcome < 1)
    throw new VerdictRefused(
      "NothingDecided",
      "The verdict escalates, which decides nothing: unless another verdict follows, the job expires and its client is refunded.",
    );
  if (message.outcome === "refund" && issuedAt < terms.rejectFrom)
    throw new VerdictRefused(
      "IssuedTooEarly",
      `The refund was issued before ${terms.rejectFrom}, the earliest time at which this job can be rejected.`,
    );
  const onChain = { id, outcome, conditionsSha256, dealRefHash, issuedAt: BigInt(issuedAt) };
  const args = [{ ...terms, rejectFrom: BigInt(terms.rejectFrom) }, jobs, jobId, onChain, signature] as const;
  return encodeFunctionData({ abi: evaluatorAbi, functionName: "evaluate", args });
}
