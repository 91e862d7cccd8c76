import { parseAbi } from "viem";

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
