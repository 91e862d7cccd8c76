// SPDX-License-Identifier: UNLICENSED
pragma solidity 0.8.37;

/// @title IEscrow
/// @notice Holds a buyer's USDC for a merchant until the arbiter releases it to the merchant, less 1%, or refunds it to
/// the buyer. From 30 minutes after the hold anybody may refund it. Nothing else can happen to it: there is no owner,
/// no upgrade, no pause and no other recipient.
/// @dev Plays the operator, the escrow and the token collector of the x402 `commerce` scheme at once. The payment's
/// terms, its id and its nonce are those of base/commerce-payments (https://github.com/base/commerce-payments). Amounts
/// are atomic units of USDC (1 USDC is 1,000,000); times are unix seconds. USDC that is sent here without a hold stays
/// here.
interface IEscrow {
    /// @notice The terms of one payment, which the payer signs by their hash.
    struct PaymentInfo {
        /// @dev Who drives the payment: this contract.
        address operator;
        /// @dev Who pays, and who is refunded.
        address payer;
        /// @dev The merchant.
        address receiver;
        /// @dev USDC.
        address token;
        /// @dev The amount held.
        uint120 maxAmount;
        /// @dev A hold is possible before this time. It is the signed authorization's `validBefore`.
        uint48 preApprovalExpiry;
        /// @dev A release is possible before this time.
        uint48 authorizationExpiry;
        /// @dev Not used here; not before `authorizationExpiry`.
        uint48 refundExpiry;
        /// @dev The least fee in basis points: 100.
        uint16 minFeeBps;
        /// @dev The greatest fee in basis points: 100.
        uint16 maxFeeBps;
        /// @dev Who receives the fee: `FEE_RECIPIENT`.
        address feeReceiver;
        /// @dev Tells payments with the same terms apart.
        uint256 salt;
    }

    /// @notice What has become of a payment. It only ever goes from None to Held, and from Held to Released or to
    /// Refunded.
    enum Status {
        None,
        Held,
        Released,
        Refunded
    }

    /// @notice An address given to the constructor is zero.
    error ZeroAddress();
    /// @notice The terms name another operator than this contract.
    error WrongOperator(address got, address wanted);
    /// @notice The hold was asked of another token collector than this contract.
    error WrongCollector(address got, address wanted);
    /// @notice The terms name another token than USDC.
    error WrongToken(address got, address wanted);
    /// @notice The merchant cannot be paid: it is zero, this contract or USDC itself.
    error WrongReceiver(address got);
    /// @notice The terms allow another fee than 100 basis points.
    error WrongFee(uint16 gotMin, uint16 gotMax, uint16 wanted);
    /// @notice The terms name another receiver of the fee.
    error WrongFeeReceiver(address got, address wanted);
    /// @notice The amount is not the one of the terms, or it is zero.
    error WrongAmount(uint256 got, uint256 wanted);
    /// @notice The times are not in order: `preApprovalExpiry` <= `authorizationExpiry` <= `refundExpiry`.
    error WrongExpiries(uint48 preApproval, uint48 authorization, uint48 refund);
    /// @notice The payment is past the status that this call needs, or not there yet.
    error WrongStatus(bytes32 id, Status got, Status wanted);
    /// @notice A hold came at or after `preApprovalExpiry`.
    error PreApprovalExpired(uint256 timestamp, uint48 expiry);
    /// @notice A release came at or after `authorizationExpiry`.
    error AuthorizationExpired(uint256 timestamp, uint48 expiry);
    /// @notice Neither the caller nor the signer of the verdict is the arbiter.
    /// @param got The caller when there is no verdict; else its signer, zero when its signature is malformed.
    /// @param wanted The arbiter.
    error NotArbiter(address got, address wanted);
    /// @notice Before `refundableFrom` a refund needs the arbiter.
    /// @param got The caller when there is no verdict; else its signer, zero when its signature is malformed.
    /// @param wanted The arbiter.
    error NotYetRefundable(address got, address wanted, uint256 timestamp, uint48 refundableFrom);
    /// @notice The transfer to the recipient ran out of gas: the caller has to send more.
    /// @param got The gas that was left after it.
    /// @param wanted The least that is left after a transfer that USDC itself refused.
    error PayoutStarved(uint256 got, uint256 wanted);
    /// @notice The account is owed nothing.
    error NothingOwed(address account);
    /// @notice USDC answered a withdrawal with false.
    error WithdrawalRefused(address account, uint256 amount);

    /// @notice The contract is there, with these roles for ever.
    event Opened(address indexed usdc, address indexed arbiter, address indexed feeRecipient);
    /// @notice The payer's USDC is held. With the roles of `Opened`, these are the whole terms of the payment.
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
    /// @notice The merchant gets `amount - fee`, and the fee recipient is owed `fee` from now on.
    /// @param record SHA-256 of the public verdict document.
    event Released(
        bytes32 indexed id,
        address indexed payer,
        address indexed receiver,
        uint256 amount,
        uint256 fee,
        bytes32 record
    );
    /// @notice The payer gets `amount` back, all of it.
    /// @param record SHA-256 of the public verdict document; zero when nobody but the clock decided.
    event Refunded(
        bytes32 indexed id,
        address indexed payer,
        address indexed receiver,
        uint256 amount,
        bytes32 record
    );
    /// @notice USDC refused the transfer of a release or of a refund (it is paused, or the account is blacklisted): the
    /// account is owed `amount` instead.
    event Credited(bytes32 indexed id, address indexed account, uint256 amount);
    /// @notice The account was paid all that it was owed.
    event Withdrawn(address indexed account, uint256 amount);

    /// @notice Holds the payer's USDC. Anybody may submit it; the payer's signature binds every field of the terms.
    /// @dev Reverts, in this order, with WrongOperator, WrongCollector, WrongToken, WrongReceiver, WrongFee,
    /// WrongFeeReceiver, WrongAmount, WrongExpiries, PreApprovalExpired, WrongStatus, or as USDC does.
    /// @param info The terms: operator and token are pinned to this contract and USDC, both fees to 100, `feeReceiver`
    /// to `FEE_RECIPIENT`.
    /// @param amount Exactly `info.maxAmount`, more than zero.
    /// @param collector This contract.
    /// @param signature The payer's signature of USDC's `ReceiveWithAuthorization`: from the payer to this contract,
    /// value `amount`, valid after 0 and before `preApprovalExpiry`, nonce `getPayerAgnosticHash(info)`.
    function authorize(PaymentInfo calldata info, uint256 amount, address collector, bytes calldata signature) external;

    /// @notice Releases a held payment: 1% of it, rounded down, is owed to the fee recipient from now on, and the
    /// merchant is paid the rest. Only by the word of the arbiter, and before `authorizationExpiry`.
    /// @dev Reverts, in this order, with WrongStatus, NotArbiter, AuthorizationExpired, PayoutStarved. A transfer that
    /// USDC refuses does not revert: the merchant is then owed the amount.
    /// @param info The terms of the payment.
    /// @param record SHA-256 of the public verdict document.
    /// @param verdict Not read when the arbiter calls; else its 65 bytes r, s, v over the EIP-712 struct
    /// `Verdict(bytes32 paymentId,bool release,bytes32 record)` with `release` true.
    function release(PaymentInfo calldata info, bytes32 record, bytes calldata verdict) external;

    /// @notice Refunds a held payment to its payer in full. By the word of the arbiter at any time, and by anybody from
    /// `refundableFrom` on: 30 minutes after the hold.
    /// @dev Reverts, in this order, with WrongStatus, NotYetRefundable, PayoutStarved. A transfer that USDC refuses
    /// does not revert: the payer is then owed the amount.
    /// @param info The terms of the payment.
    /// @param record SHA-256 of the public verdict document; without the arbiter's word it is left out of the event.
    /// @param verdict As for `release`, with `release` false.
    function refund(PaymentInfo calldata info, bytes32 record, bytes calldata verdict) external;

    /// @notice Pays an account all that it is owed. Anybody may call; nobody but the account is paid.
    /// @dev Reverts with NothingOwed, as USDC does, or with WithdrawalRefused; the debt then stays.
    /// @param account The account that is owed.
    /// @return amount What it was paid.
    function withdraw(address account) external returns (uint256 amount);

    /// @notice A payment's id: the hash of its terms, of the chain and of this contract.
    function getHash(PaymentInfo calldata info) external view returns (bytes32 id);

    /// @notice The nonce of the payer's authorization: the payment's id as if its payer were zero.
    function getPayerAgnosticHash(PaymentInfo calldata info) external view returns (bytes32 nonce);

    /// @notice What has become of a payment.
    /// @return status None when it was never held.
    /// @return refundableFrom From this time on anybody may refund it: 30 minutes after the hold.
    function payments(bytes32 id) external view returns (Status status, uint48 refundableFrom);

    /// @notice What the account can be paid by `withdraw`.
    function owed(address account) external view returns (uint256 amount);

    /// @notice Circle's USDC on this chain.
    function USDC() external view returns (address usdc);

    /// @notice Whose word releases and refunds.
    function ARBITER() external view returns (address arbiter);

    /// @notice Who is owed the fees.
    function FEE_RECIPIENT() external view returns (address feeRecipient);

    /// @notice The hash of the type of the terms, as EIP-712 forms it.
    function PAYMENT_INFO_TYPEHASH() external view returns (bytes32 typehash);

    /// @notice The hash of the type of the arbiter's verdict, as EIP-712 forms it.
    function VERDICT_TYPEHASH() external view returns (bytes32 typehash);

    /// @notice The EIP-712 domain of verdicts: name "Agent Payment Trust Escrow", version "1", this chain and this
    /// contract.
    function DOMAIN_SEPARATOR() external view returns (bytes32 separator);
}
