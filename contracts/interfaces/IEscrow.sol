// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

/// @title IEscrow
/// @notice Holds a buyer's USDC for a merchant until the arbiter releases it to the merchant, less a 1% fee, or refunds
/// the buyer. Starting 30 minutes after the hold, anyone may trigger the refund. There is no other way out: no owner,
/// no upgrade, no pause and no other recipient.
/// @dev Acts as operator, escrow and token collector of the x402 `commerce` scheme in one contract. The payment's
/// terms, id and nonce match base/commerce-payments (https://github.com/base/commerce-payments). Amounts are in atomic
/// units of USDC (1 USDC is 1,000,000); times are Unix timestamps in seconds. USDC sent here without a hold cannot be
/// recovered.
interface IEscrow {
    /// @notice The terms of a payment. The payer signs their hash.
    struct PaymentInfo {
        /// @dev The operator of the payment: this contract.
        address operator;
        /// @dev The buyer, who pays and receives any refund.
        address payer;
        /// @dev The merchant.
        address receiver;
        /// @dev The USDC contract.
        address token;
        /// @dev The amount to hold.
        uint120 maxAmount;
        /// @dev The hold must happen before this time. Equals `validBefore` of the signed authorization.
        uint48 preApprovalExpiry;
        /// @dev The release must happen before this time.
        uint48 authorizationExpiry;
        /// @dev Unused here; must not be before `authorizationExpiry`.
        uint48 refundExpiry;
        /// @dev The minimum fee in basis points: 100.
        uint16 minFeeBps;
        /// @dev The maximum fee in basis points: 100.
        uint16 maxFeeBps;
        /// @dev The recipient of the fee: `FEE_RECIPIENT`.
        address feeReceiver;
        /// @dev Distinguishes payments with otherwise identical terms.
        uint256 salt;
    }

    /// @notice The status of a payment. The only transitions are None to Held, and Held to Released or Refunded.
    enum Status {
        None,
        Held,
        Released,
        Refunded
    }

    /// @notice A constructor argument is the zero address.
    error ZeroAddress();
    /// @notice The operator in the terms is not this contract.
    error WrongOperator(address got, address wanted);
    /// @notice The token collector passed to `authorize` is not this contract.
    error WrongCollector(address got, address wanted);
    /// @notice The token in the terms is not USDC.
    error WrongToken(address got, address wanted);
    /// @notice The merchant is the zero address, this contract or USDC itself, and cannot be paid.
    error WrongReceiver(address got);
    /// @notice The terms allow a fee other than 100 basis points.
    error WrongFee(uint16 gotMin, uint16 gotMax, uint16 wanted);
    /// @notice The fee receiver in the terms is not `FEE_RECIPIENT`.
    error WrongFeeReceiver(address got, address wanted);
    /// @notice The amount differs from the terms.
    error WrongAmount(uint256 got, uint256 wanted);
    /// @notice The amount is less than `MINIMUM`.
    error BelowMinimum(uint256 got, uint256 wanted);
    /// @notice The expiries violate `preApprovalExpiry` <= `authorizationExpiry` <= `refundExpiry`.
    error WrongExpiries(uint48 preApproval, uint48 authorization, uint48 refund);
    /// @notice The payment does not have the status that the call requires.
    error WrongStatus(bytes32 id, Status got, Status wanted);
    /// @notice The hold was submitted at or after `preApprovalExpiry`.
    error PreApprovalExpired(uint256 timestamp, uint48 expiry);
    /// @notice The release was submitted at or after `authorizationExpiry`.
    error AuthorizationExpired(uint256 timestamp, uint48 expiry);
    /// @notice The caller is not the arbiter, and no verdict signed by the arbiter was passed.
    /// @param got The caller if no verdict was passed; otherwise its signer, or zero if the signature is malformed.
    /// @param wanted The arbiter.
    error NotArbiter(address got, address wanted);
    /// @notice Only the arbiter can refund before `refundableFrom`.
    /// @param got The caller if no verdict was passed; otherwise its signer, or zero if the signature is malformed.
    /// @param wanted The arbiter.
    error NotYetRefundable(address got, address wanted, uint256 timestamp, uint48 refundableFrom);
    /// @notice The transfer to the recipient ran out of gas. Retry with a higher gas limit.
    /// @param got The gas left after the transfer.
    /// @param wanted The minimum gas left after a transfer that USDC itself rejected.
    error PayoutStarved(uint256 got, uint256 wanted);
    /// @notice The account is owed nothing.
    error NothingOwed(address account);
    /// @notice USDC returned false for a withdrawal.
    error WithdrawalRefused(address account, uint256 amount);

    /// @notice The contract was deployed with these roles, which never change.
    event Opened(address indexed usdc, address indexed arbiter, address indexed feeRecipient);
    /// @notice The payer's USDC is now held. Together with the roles in `Opened`, the event contains all terms of the
    /// payment.
    event Held(
        bytes32 indexed id,
        address indexed payer,
        address indexed receiver,
        uint256 amount,
        uint48 preApprovalExpiry,
        uint48 authorizationExpiry,
        uint48 refundExpiry,
        uint256 salt,
        uint48 refundableFrom
    );
    /// @notice The merchant receives `amount - fee`, and `fee` is now owed to the fee recipient.
    /// @param record SHA-256 of the public verdict document.
    event Released(
        bytes32 indexed id,
        address indexed payer,
        address indexed receiver,
        uint256 amount,
        uint256 fee,
        bytes32 record
    );
    /// @notice The payer is refunded the full `amount`.
    /// @param record SHA-256 of the public verdict document, or zero if the refund was due to the timeout alone.
    event Refunded(
        bytes32 indexed id,
        address indexed payer,
        address indexed receiver,
        uint256 amount,
        bytes32 record
    );
    /// @notice USDC rejected the transfer of a release or refund (paused, or the account is blacklisted), so `amount`
    /// is now owed to the account.
    event Credited(bytes32 indexed id, address indexed account, uint256 amount);
    /// @notice The account was paid everything it was owed.
    event Withdrawn(address indexed account, uint256 amount);

    /// @notice Holds the payer's USDC. Anyone may call; the payer's signature commits to every field of the terms.
    /// @dev Reverts, in this order, with WrongOperator, WrongCollector, WrongToken, WrongReceiver, WrongFee,
    /// WrongFeeReceiver, WrongAmount, BelowMinimum, WrongExpiries, PreApprovalExpired or WrongStatus, or with USDC's
    /// own error.
    /// @param info The terms. The operator must be this contract, the token USDC, both fees 100 and `feeReceiver`
    /// `FEE_RECIPIENT`.
    /// @param amount Must equal `info.maxAmount` and be at least `MINIMUM`.
    /// @param collector Must be this contract.
    /// @param signature The payer's signature of USDC's `ReceiveWithAuthorization`: from the payer to this contract,
    /// value `amount`, `validAfter` 0, `validBefore` `preApprovalExpiry`, nonce `getPayerAgnosticHash(info)`.
    function authorize(PaymentInfo calldata info, uint256 amount, address collector, bytes calldata signature) external;

    /// @notice Releases a held payment: 1%, rounded down, is owed to the fee recipient and the merchant is paid the
    /// rest. Requires the arbiter as caller or its signed verdict, and must happen before `authorizationExpiry`.
    /// @dev Reverts, in this order, with WrongStatus, NotArbiter, AuthorizationExpired or PayoutStarved. A transfer
    /// that USDC rejects does not revert: the merchant is owed its share instead.
    /// @param info The terms of the payment.
    /// @param record SHA-256 of the public verdict document.
    /// @param verdict Ignored if the arbiter calls. Otherwise its 65-byte signature (r, s, v) of the EIP-712 struct
    /// `Verdict(bytes32 paymentId,bool release,bytes32 record)` with `release` true.
    function release(PaymentInfo calldata info, bytes32 record, bytes calldata verdict) external;

    /// @notice Refunds a held payment to its payer in full. The arbiter, or anyone with its signed verdict, may call at
    /// any time; anyone else may call from `refundableFrom`, 30 minutes after the hold.
    /// @dev Reverts, in this order, with WrongStatus, NotYetRefundable or PayoutStarved. A transfer that USDC rejects
    /// does not revert: the payer is owed the amount instead.
    /// @param info The terms of the payment.
    /// @param record SHA-256 of the public verdict document. Omitted from the event unless the arbiter decided the
    /// refund.
    /// @param verdict As in `release`, but with `release` false.
    function refund(PaymentInfo calldata info, bytes32 record, bytes calldata verdict) external;

    /// @notice Pays an account everything it is owed. Anyone may call, but only the account is paid.
    /// @dev Reverts with NothingOwed, USDC's own error or WithdrawalRefused; the amount then stays owed.
    /// @param account The account to pay.
    /// @return amount The amount paid.
    function withdraw(address account) external returns (uint256 amount);

    /// @notice Returns the payment id: a hash of the terms, the chain id and this contract's address.
    function getHash(PaymentInfo calldata info) external view returns (bytes32 id);

    /// @notice Returns the nonce of the payer's authorization: the payment id computed with a payer of zero.
    function getPayerAgnosticHash(PaymentInfo calldata info) external view returns (bytes32 nonce);

    /// @notice Returns the state of a payment.
    /// @return status None if the payment was never held.
    /// @return refundableFrom When anyone may refund the payment: 30 minutes after the hold.
    function payments(bytes32 id) external view returns (Status status, uint48 refundableFrom);

    /// @notice Returns the amount that `withdraw` would pay the account.
    function owed(address account) external view returns (uint256 amount);

    /// @notice Circle's USDC on this chain.
    function USDC() external view returns (address usdc);

    /// @notice The account that decides releases and refunds.
    function ARBITER() external view returns (address arbiter);

    /// @notice The account to which fees are owed.
    function FEE_RECIPIENT() external view returns (address feeRecipient);

    /// @notice The smallest amount that can be held: 0.01 USDC. Its fee is 1% of that, and dust would cost the arbiter
    /// more.
    function MINIMUM() external view returns (uint256 amount);

    /// @notice The EIP-712 typehash of the payment terms.
    function PAYMENT_INFO_TYPEHASH() external view returns (bytes32 typehash);

    /// @notice The EIP-712 typehash of the arbiter's verdict.
    function VERDICT_TYPEHASH() external view returns (bytes32 typehash);

    /// @notice The EIP-712 domain separator of verdicts: name "Agent Payment Trust Escrow", version "1", this chain and
    /// this contract.
    function DOMAIN_SEPARATOR() external view returns (bytes32 separator);
}
