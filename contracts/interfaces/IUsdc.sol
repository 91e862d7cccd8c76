// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

/// @title IUsdc
/// @notice The subset of Circle's FiatTokenV2_2 that the escrow calls. Amounts are in atomic units: 1 USDC is
/// 1,000,000.
interface IUsdc {
    /// @notice Transfers USDC from the caller. Reverts if USDC is paused or either account is blacklisted.
    /// @param to The recipient.
    /// @param value The amount.
    /// @return paid True if the transfer succeeded.
    function transfer(address to, uint256 value) external returns (bool paid);

    /// @notice Transfers USDC to the caller from a payer who signed an authorization (EIP-3009,
    /// https://eips.ethereum.org/EIPS/eip-3009). Unlike `transferWithAuthorization`, only the payee can submit it.
    /// @dev Reverts at or before `validAfter`, at or after `validBefore`, if the nonce was used or canceled, if the
    /// signature is invalid, if USDC is paused, or if either account is blacklisted.
    /// @param from The payer: an externally owned account or an ERC-1271 wallet.
    /// @param to The payee, which must be the caller.
    /// @param value The amount.
    /// @param validAfter The authorization is valid after this Unix timestamp.
    /// @param validBefore The authorization is valid before this Unix timestamp.
    /// @param nonce The payer's single-use nonce.
    /// @param signature A 65-byte signature (r, s, v) from an externally owned account, or any signature that the
    /// payer's wallet accepts.
    function receiveWithAuthorization(
        address from,
        address to,
        uint256 value,
        uint256 validAfter,
        uint256 validBefore,
        bytes32 nonce,
        bytes calldata signature
    ) external;

    /// @notice Transfers USDC to a payee from a payer who signed an authorization (EIP-3009). Anyone can submit it.
    /// @dev Reverts like `receiveWithAuthorization`, and asks a payer that has code whether it signed (ERC-1271).
    /// @param from The payer.
    /// @param to The payee.
    /// @param value The amount.
    /// @param validAfter The authorization is valid after this Unix timestamp.
    /// @param validBefore The authorization is valid before this Unix timestamp.
    /// @param nonce The payer's single-use nonce.
    /// @param v 27 or 28.
    /// @param r The first half of the signature.
    /// @param s The second half, in the lower half of the order.
    function transferWithAuthorization(
        address from,
        address to,
        uint256 value,
        uint256 validAfter,
        uint256 validBefore,
        bytes32 nonce,
        uint8 v,
        bytes32 r,
        bytes32 s
    ) external;
}
