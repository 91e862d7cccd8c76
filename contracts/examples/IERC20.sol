// SPDX-License-Identifier: UNLICENSED
pragma solidity 0.8.37;

/// @title IERC20
/// @notice The part of ERC-20 that the example calls (https://eips.ethereum.org/EIPS/eip-20).
interface IERC20 {
    /// @notice Moves the caller's tokens.
    /// @param to The account that is paid.
    /// @param value The amount, in atomic units.
    /// @return moved True when the amount was moved.
    function transfer(address to, uint256 value) external returns (bool moved);

    /// @notice Moves an account's tokens, which it approved.
    /// @param from The account that pays.
    /// @param to The account that is paid.
    /// @param value The amount, in atomic units.
    /// @return moved True when the amount was moved.
    function transferFrom(address from, address to, uint256 value) external returns (bool moved);
}
