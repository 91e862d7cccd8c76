// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {IEscrow} from "./IEscrow.sol";

/// @title IAuthCaptureEscrow
/// @notice The subset of base/commerce-payments' escrow (https://github.com/base/commerce-payments) that this project
/// calls. It is not ours. It holds USDC for operators, and each payment obeys the operator that its terms name.
/// @dev `capture` is omitted, because its third argument is a rate in version 1.0 and an amount in version 1.1.
interface IAuthCaptureEscrow {
    /// @notice Collects the payer's tokens and holds them. Only the payment's operator may call.
    /// @dev Sets the payment's state first and collects afterwards; its functions cannot be reentered meanwhile.
    /// @param info The terms of the payment.
    /// @param amount The amount to hold, at most `info.maxAmount`.
    /// @param collector The contract that collects the tokens.
    /// @param data The collector's data, such as the payer's signature.
    function authorize(IEscrow.PaymentInfo calldata info, uint256 amount, address collector, bytes calldata data)
        external;

    /// @notice Returns the held amount to the payer. Only the payment's operator may call.
    /// @param info The terms of the payment.
    function void(IEscrow.PaymentInfo calldata info) external;

    /// @notice Returns the held amount to the payer, who must be the caller, from `authorizationExpiry` on.
    /// @param info The terms of the payment.
    function reclaim(IEscrow.PaymentInfo calldata info) external;

    /// @notice Returns the payment id: a hash of the terms, the chain id and the escrow's address.
    function getHash(IEscrow.PaymentInfo calldata info) external view returns (bytes32 id);

    /// @notice Returns the state of a payment.
    /// @return hasCollectedPayment True once the payment was held.
    /// @return capturableAmount The held amount.
    /// @return refundableAmount The captured amount.
    function paymentState(bytes32 id)
        external
        view
        returns (bool hasCollectedPayment, uint120 capturableAmount, uint120 refundableAmount);

    /// @notice Returns the account that holds the tokens of an operator's payments.
    function getTokenStore(address operator) external view returns (address store);
}
