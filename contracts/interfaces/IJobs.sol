// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

/// @title IJobs
/// @notice The two functions of an ERC-8183 job contract that an evaluator calls (https://eips.ethereum.org/EIPS/eip-8183).
/// @dev They are alike in every draft; how a job is read is not.
interface IJobs {
    /// @notice Pays the provider. Only the job's evaluator may call, once the work was submitted.
    /// @param jobId The job.
    /// @param reason A commitment to why.
    /// @param optParams For the job's hook.
    function complete(uint256 jobId, bytes32 reason, bytes calldata optParams) external;

    /// @notice Refunds the client. Only the job's evaluator may call, once the job was funded.
    /// @param jobId The job.
    /// @param reason A commitment to why.
    /// @param optParams For the job's hook.
    function reject(uint256 jobId, bytes32 reason, bytes calldata optParams) external;
}
