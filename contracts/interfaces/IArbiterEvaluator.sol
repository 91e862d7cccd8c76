// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {VerdictLib} from "../VerdictLib.sol";
import {IERC20} from "./IERC20.sol";

/// @title IArbiterEvaluator
/// @notice Turns the external arbiter's verdicts into `complete` and `reject` of ERC-8183 jobs
/// (https://eips.ethereum.org/EIPS/eip-8183). Each set of terms has its own evaluator address, so a job that names the
/// address commits to the conditions. There is no owner, and nothing can be changed.
/// @dev Before you name an evaluator in a job:
/// - Choose `rejectFrom` with the time of delivery at or before it, and more than an hour before the job's `expiredAt`.
///   With 0, anyone can buy a verdict right after the funding and have the job rejected before delivery.
/// - A verdict that escalates decides nothing. Without another one the job expires, and the client is refunded. The
///   burden of proof is therefore on the provider.
/// - If there are several verdicts, the first one that the job contract accepts counts.
/// - A job contract's hooks, pauses and administrators are outside our control. If it reverts, this contract reverts
///   with the same error, and the same verdict can be submitted again for a day.
interface IArbiterEvaluator {
    /// @notice The terms to which an evaluator address commits.
    struct Terms {
        /// @dev The `conditions_sha256` of the verdicts that count.
        bytes32 conditionsSha256;
        /// @dev Only a refund verdict issued at this Unix timestamp or later rejects, because delivery is not late
        /// before then.
        uint64 rejectFrom;
    }

    /// @notice A constructor argument is the zero address.
    error ZeroAddress();
    /// @notice The verdict's conditions do not match the terms.
    error WrongConditions(bytes32 got, bytes32 wanted);
    /// @notice The verdict is about another deal.
    /// @param got The verdict's `dealRefHash`.
    /// @param wanted The Keccak-256 of the job's `deal_ref`.
    error WrongDeal(bytes32 got, bytes32 wanted);
    /// @notice The refund verdict was issued before `rejectFrom`.
    error IssuedTooEarly(uint64 issuedAt, uint64 rejectFrom);
    /// @notice The verdict escalates.
    error NothingDecided();

    /// @notice A job was completed or rejected according to a verdict.
    /// @param reason The EIP-712 digest of the verdict, which is the reason in the job contract.
    event Evaluated(
        address indexed jobs,
        uint256 indexed jobId,
        address indexed evaluator,
        bool isComplete,
        bytes32 reason,
        string verdictId
    );

    /// @notice Applies a verdict to a job: a release completes it, a refund rejects it. Anyone may call.
    /// @dev Reverts, in this order, with WrongConditions or WrongDeal, with an error of VerdictLib.check, with
    /// NothingDecided or IssuedTooEarly, or with the job contract's own error. Passes no `optParams`.
    /// @param terms The terms of the evaluator that the job names.
    /// @param jobs The job contract.
    /// @param jobId The job.
    /// @param verdict The `message` of the verdict's attestation, with `outcome` as an enum value.
    /// @param signature The attestation's `signature`.
    function evaluate(
        Terms calldata terms,
        address jobs,
        uint256 jobId,
        VerdictLib.Verdict calldata verdict,
        bytes calldata signature
    ) external;

    /// @notice Sends an evaluator's payments from job contracts to the fee recipient. Anyone may call.
    /// @param terms The terms of the evaluator.
    /// @param token The token, all of which is sent.
    function sweep(Terms calldata terms, IERC20 token) external;

    /// @notice Returns the evaluator to name in `createJob`. It needs no code before its first verdict.
    function evaluatorOf(Terms calldata terms) external view returns (address evaluator);

    /// @notice Returns the `deal_ref` for the claims about a job: "0x" followed by the Keccak-256 of
    /// `abi.encode(chain id, evaluator, jobs, jobId)` in lowercase hex.
    /// @return dealRef The 66-character string.
    function dealRefOf(address evaluator, address jobs, uint256 jobId) external view returns (string memory dealRef);

    /// @notice How long a verdict can be submitted after its timestamp.
    function MAX_AGE() external view returns (uint64 period);

    /// @notice The account whose verdicts count: the `signer` of the service's attestations.
    function ARBITER() external view returns (address arbiter);

    /// @notice The account that `sweep` pays.
    function FEE_RECIPIENT() external view returns (address feeRecipient);
}
