// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

/// @title IERC20
/// @notice The subset of ERC-20 that this project uses (https://eips.ethereum.org/EIPS/eip-20).
interface IERC20 {
    /// @notice Returns the tokens of an account, in atomic units.
    function balanceOf(address account) external view returns (uint256 balance);

    /// @notice Transfers tokens from the caller.
    /// @param to The recipient.
    /// @param value The amount in atomic units.
    /// @return moved True if the transfer succeeded.
    function transfer(address to, uint256 value) external returns (bool moved);

    /// @notice Transfers tokens from an account that has approved the caller.
    /// @param from The account to debit.
    /// @param to The recipient.
    /// @param value The amount in atomic units.
    /// @return moved True if the transfer succeeded.
    function transferFrom(address from, address to, uint256 value) external returns (bool moved);
}
