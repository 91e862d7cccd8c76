// SPDX-License-Identifier: UNLICENSED
pragma solidity 0.8.37;

/// @title IUsdc
/// @notice The part of Circle's FiatTokenV2_2 that the escrow calls. Amounts are atomic units: 1 USDC is 1,000,000.
interface IUsdc {
    /// @notice Moves the caller's USDC. Reverts while USDC is paused and when either account is blacklisted.
    /// @param to The account that is paid.
    /// @param value The amount.
    /// @return paid True when the amount was moved.
    function transfer(address to, uint256 value) external returns (bool paid);

    /// @notice Moves a payer's USDC to the caller, which the payer signed for (EIP-3009,
    /// https://eips.ethereum.org/EIPS/eip-3009). Unlike `transferWithAuthorization`, nobody but the payee can submit
    /// it.
    /// @dev Reverts before and at `validAfter`, from `validBefore` on, for a used or cancelled nonce, for a bad
    /// signature, while USDC is paused, and when an account is blacklisted.
    /// @param from The payer, an externally owned account or an ERC-1271 wallet.
    /// @param to The payee, which must be the caller.
    /// @param value The amount.
    /// @param validAfter The authorization is valid after this unix time (seconds).
    /// @param validBefore The authorization is valid before this unix time (seconds).
    /// @param nonce The payer's nonce, used once.
    /// @param signature 65 bytes r, s, v of an externally owned account, or what the payer's wallet accepts.
    function receiveWithAuthorization(
        address from,
        address to,
        uint256 value,
        uint256 validAfter,
        uint256 validBefore,
        bytes32 nonce,
        bytes calldata signature
    ) external;
}
