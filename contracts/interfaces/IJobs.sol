// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

/// @title IJobs
/// @notice The two functions of an ERC-8183 job contract that an evaluator calls
/// (https://eips.ethereum.org/EIPS/eip-8183).
/// @dev They are the same in every draft, unlike the functions that read a job.
interface IJobs {
    /// @notice Pays the provider. Only the job's evaluator may call, once the work is submitted.
    /// @param jobId The job.
    /// @param reason A commitment to the reason.
    /// @param optParams For the job's hook.
    function complete(uint256 jobId, bytes32 reason, bytes calldata optParams) external;

    /// @notice Refunds the client. Only the job's evaluator may call, once the job is funded.
    /// @param jobId The job.
    /// @param reason A commitment to the reason.
    /// @param optParams For the job's hook.
    function reject(uint256 jobId, bytes32 reason, bytes calldata optParams) external;
}
