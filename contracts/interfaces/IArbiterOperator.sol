// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {IEscrow} from "./IEscrow.sol";

/// @title IArbiterOperator
/// @notice Applies the rules of IEscrow to payments that base/commerce-payments' escrow holds, so that stock clients of
/// the x402 scheme `auth-capture` can pay. The arbiter releases a payment to the merchant, less a 1% fee, or refunds
/// the buyer. Starting 30 minutes after the hold, anyone may trigger the refund. There is no owner, no upgrade, no
/// pause, no other recipient, no partial release and no way back from a release.
/// @dev Holds no USDC. Terms, verdicts, events and errors are defined in IEscrow. A payment's id is its id in the
/// escrow that holds it; verdicts are signed for this contract. Unlike Escrow, it pushes every payment: if USDC is
/// paused or rejects the merchant, the fee recipient or the payer, the decision reverts and can be retried. From
/// `authorizationExpiry` on, the payer may also take the amount back from the escrow that holds it. Amounts are in
/// atomic units of USDC (1 USDC is 1,000,000); times are Unix timestamps in seconds.
interface IArbiterOperator {
    /// @notice Holds the payer's USDC. Anyone may call; the payer's signature commits to every field of the terms.
    /// @dev Reverts, in this order, with WrongOperator, WrongCollector, WrongToken, WrongReceiver, WrongFee,
    /// WrongFeeReceiver, WrongAmount or BelowMinimum, with an error of the escrow that holds the payment, or with
    /// USDC's own error.
    /// @param info The terms. The operator must be this contract, the token USDC, both fees 100 and `feeReceiver`
    /// `FEE_RECIPIENT`.
    /// @param amount Must equal `info.maxAmount` and be at least `MINIMUM`.
    /// @param collector Must be `COLLECTOR`.
    /// @param signature The payer's signature of USDC's `ReceiveWithAuthorization`: from the payer to `COLLECTOR`,
    /// value `amount`, `validAfter` 0, `validBefore` `preApprovalExpiry`, and the payment id computed with a payer of
    /// zero as the nonce. A wallet that has no code yet wraps it with its deployment (ERC-6492).
    function authorize(IEscrow.PaymentInfo calldata info, uint256 amount, address collector, bytes calldata signature)
        external;

    /// @notice Releases a held payment: 1%, rounded down, is paid to the fee recipient and the rest to the merchant.
    /// Requires the arbiter as caller or its signed verdict, and must happen before `authorizationExpiry`.
    /// @dev Reverts with NotArbiter, with an error of the escrow that holds the payment, or with USDC's own error.
    /// @param info The terms of the payment.
    /// @param record SHA-256 of the public verdict document.
    /// @param verdict Ignored if the arbiter calls. Otherwise its 65-byte signature (r, s, v) of the EIP-712 struct
    /// `Verdict(bytes32 paymentId,bool release,bytes32 record)` with `release` true.
    function release(IEscrow.PaymentInfo calldata info, bytes32 record, bytes calldata verdict) external;

    /// @notice Refunds a held payment to its payer in full. The arbiter, or anyone with its signed verdict, may call at
    /// any time; anyone else may call from `refundableFrom`, 30 minutes after the hold.
    /// @dev Reverts with WrongStatus (never held here), NotYetRefundable, with an error of the escrow that holds the
    /// payment, or with USDC's own error.
    /// @param info The terms of the payment.
    /// @param record SHA-256 of the public verdict document. Omitted from the event unless the arbiter decided the
    /// refund.
    /// @param verdict As in `release`, but with `release` false.
    function refund(IEscrow.PaymentInfo calldata info, bytes32 record, bytes calldata verdict) external;

    /// @notice Returns the payment id: a hash of the terms, the chain id and the address of `ESCROW`.
    function getHash(IEscrow.PaymentInfo calldata info) external view returns (bytes32 id);

    /// @notice Returns the state of a payment.
    /// @return status None if the payment was never held here. Also Refunded if its payer took it back from `ESCROW`.
    /// @return refundableFrom When anyone may refund the payment: 30 minutes after the hold.
    function payments(bytes32 id) external view returns (IEscrow.Status status, uint48 refundableFrom);

    /// @notice The escrow of base/commerce-payments that holds the payments.
    function ESCROW() external view returns (address escrow);

    /// @notice The collector of that escrow for EIP-3009 authorizations.
    function COLLECTOR() external view returns (address collector);

    /// @notice Circle's USDC on this chain.
    function USDC() external view returns (address usdc);

    /// @notice The account that decides releases and refunds.
    function ARBITER() external view returns (address arbiter);

    /// @notice The account that receives the fees.
    function FEE_RECIPIENT() external view returns (address feeRecipient);

    /// @notice The smallest amount that can be held: 0.01 USDC. Its fee is 1% of that, and dust would cost the arbiter
    /// more.
    function MINIMUM() external view returns (uint256 amount);

    /// @notice Whether `capture` of `ESCROW` takes the fee as an amount (version 1.1) or in basis points (version 1.0).
    function FEE_IS_AMOUNT() external view returns (bool feeIsAmount);

    /// @notice The EIP-712 typehash of the payment terms.
    function PAYMENT_INFO_TYPEHASH() external view returns (bytes32 typehash);

    /// @notice The EIP-712 typehash of the arbiter's verdict.
    function VERDICT_TYPEHASH() external view returns (bytes32 typehash);

    /// @notice The EIP-712 domain separator of verdicts: name "Agent Payment Trust Escrow", version "1", this chain and
    /// this contract.
    function DOMAIN_SEPARATOR() external view returns (bytes32 separator);
}
