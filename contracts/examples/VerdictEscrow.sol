// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {VerdictLib} from "../VerdictLib.sol";
import {IERC20} from "../interfaces/IERC20.sol";

/// @title VerdictEscrow
/// @notice Example escrow that executes the external arbiter's verdicts. It holds a payer's USDC for a deal, then pays
/// the payee or refunds the payer. It has no owner, upgrade path, pause or fee.
///
/// Lifecycle of a deal:
/// 1. The parties agree on conditions, a deadline and a salt that the payer has not used with this contract.
///    `dealRefOf` returns the resulting `deal_ref`, unique across deals, contracts and chains. Every claim includes it.
/// 2. The payer approves the amount and calls `open`. The payee checks the deal in `Opened`, then starts work.
/// 3. Either party buys a verdict on the agreed conditions with this `deal_ref`, and anyone may submit it to `execute`:
///    - release pays the payee, at any time while the USDC is still held;
///    - refund pays the payer if issued at or after the deadline; before then, delivery is not late;
///    - escalate, issued at or after the deadline, pays no one. Once `ESCALATION_PERIOD` has passed the payer may take
///      the amount back. Until then the parties can remove the arbiter's obstacle and buy another verdict.
/// 4. If no verdict arrives (the arbiter may have shut down), the payer may take the amount back once `SILENCE_PERIOD`
///    has passed since the deadline.
///
/// The burden of proof is therefore on the payee: only agree to conditions that the payer cannot make unverifiable.
/// @dev If there are several verdicts, the first one submitted counts. If USDC rejects a transfer, the call reverts,
/// the deal is unchanged and can be retried, and no other deal is affected. USDC sent here without a deal cannot be
/// recovered. Amounts are in atomic units of USDC (1 USDC is 1,000,000); times are Unix timestamps in seconds.
contract VerdictEscrow {
    /// @notice The state of a deal: None, then Open, then optionally Escalated, and finally Released or Refunded.
    enum Status {
        None,
        Open,
        Escalated,
        Released,
        Refunded
    }

    /// @notice A deal. Every field except the last two is fixed when the deal is opened.
    struct Deal {
        address payer;
        uint64 deadline;
        address payee;
        uint256 amount;
        bytes32 conditionsSha256;
        /// @dev When the payer may take the amount back.
        uint64 refundableFrom;
        Status status;
    }

    /// @notice A constructor argument is the zero address.
    error ZeroAddress();
    /// @notice The payee is the zero address or this contract, and cannot be paid.
    error WrongPayee(address got);
    /// @notice The amount is zero.
    error ZeroAmount();
    /// @notice The deadline is not in the future, or is more than `MAX_TERM` away.
    error WrongDeadline(uint64 got, uint256 earliest, uint256 latest);
    /// @notice The payer has already used this salt, so a deal with the same `deal_ref` exists.
    error DealExists(bytes32 dealRefHash);
    /// @notice The deal does not exist, is already settled, or cannot be escalated again.
    error NotOpen(bytes32 dealRefHash, Status got);
    /// @notice The verdict's conditions do not match the deal's.
    error WrongConditions(bytes32 got, bytes32 wanted);
    /// @notice The verdict was issued before the deadline and is not a release.
    error IssuedBeforeDeadline(uint64 issuedAt, uint64 deadline);
    /// @notice Only the payer may take the amount back.
    error NotPayer(address got, address wanted);
    /// @notice The payer may not take the amount back yet.
    error NotYetRefundable(uint256 timestamp, uint64 refundableFrom);
    /// @notice A USDC transfer returned false.
    error TransferRefused(address account, uint256 amount);

    /// @notice The payer's USDC is now held.
    /// @param dealRef The `deal_ref` for the deal's claims; its Keccak-256 is `dealRefHash`.
    event Opened(
        bytes32 indexed dealRefHash,
        address indexed payer,
        address indexed payee,
        uint256 amount,
        bytes32 conditionsSha256,
        uint64 deadline,
        string dealRef
    );
    /// @notice The arbiter could not verify the conditions.
    /// @param refundableFrom When the payer may take the amount back.
    event Escalated(bytes32 indexed dealRefHash, uint64 refundableFrom, string verdictId);
    /// @notice The payee was paid.
    event Released(bytes32 indexed dealRefHash, address indexed payee, uint256 amount, string verdictId);
    /// @notice The payer was refunded.
    /// @param verdictId Empty if the payer took the amount back.
    event Refunded(bytes32 indexed dealRefHash, address indexed payer, uint256 amount, string verdictId);

    /// @notice How long a verdict is valid here after its timestamp.
    uint64 public constant MAX_AGE = 1 days;
    /// @notice The delay between an escalation and the payer's right to take the amount back.
    uint64 public constant ESCALATION_PERIOD = 3 days;
    /// @notice The delay between the deadline and the payer's right to take the amount back if no verdict arrived.
    uint64 public constant SILENCE_PERIOD = 30 days;
    /// @notice The maximum time from now to a deadline.
    uint64 public constant MAX_TERM = 365 days;

    /// @notice Circle's USDC on this chain.
    IERC20 public immutable USDC;
    /// @notice The account whose verdicts count: the `signer` of the service's attestations.
    address public immutable ARBITER;

    /// @notice Deals by the Keccak-256 of their `deal_ref`.
    mapping(bytes32 dealRefHash => Deal deal) public deals;

    /// @param usdc Circle's USDC on this chain.
    /// @param arbiter The account whose verdicts count.
    constructor(IERC20 usdc, address arbiter) {
        if (address(usdc) == address(0) || arbiter == address(0)) revert ZeroAddress();
        USDC = usdc;
        ARBITER = arbiter;
    }

    /// @notice Opens a deal and holds the caller's USDC for it. The caller must have approved the amount.
    /// @dev Reverts, in this order, with WrongPayee, ZeroAmount, WrongDeadline or DealExists, with USDC's own error, or
    /// with TransferRefused.
    /// @param payee The account paid on release.
    /// @param amount The amount to hold.
    /// @param conditionsSha256 The `conditions_sha256` of every verdict on the agreed conditions.
    /// @param deadline When refund verdicts start to count. Allow a minute for the arbiter to issue one.
    /// @param salt Distinguishes the payer's deals.
    /// @return dealRefHash The Keccak-256 of the deal's `deal_ref`.
    function open(address payee, uint256 amount, bytes32 conditionsSha256, uint64 deadline, uint256 salt)
        external
        returns (bytes32 dealRefHash)
    {
        if (payee == address(0) || payee == address(this)) revert WrongPayee(payee);
        if (amount == 0) revert ZeroAmount();
        if (deadline <= block.timestamp || deadline > block.timestamp + MAX_TERM) {
            revert WrongDeadline(deadline, block.timestamp + 1, block.timestamp + MAX_TERM);
        }
        string memory dealRef = dealRefOf(msg.sender, salt);
        dealRefHash = keccak256(bytes(dealRef));
        if (deals[dealRefHash].status != Status.None) revert DealExists(dealRefHash);

        deals[dealRefHash] =
            Deal(msg.sender, deadline, payee, amount, conditionsSha256, deadline + SILENCE_PERIOD, Status.Open);
        emit Opened(dealRefHash, msg.sender, payee, amount, conditionsSha256, deadline, dealRef);
        if (!USDC.transferFrom(msg.sender, address(this), amount)) revert TransferRefused(msg.sender, amount);
    }

    /// @notice Executes a verdict on the deal it names. Anyone may call.
    /// @dev Reverts, in this order, with NotOpen or WrongConditions, with an error of VerdictLib.check, with
    /// IssuedBeforeDeadline, with USDC's own error, or with TransferRefused.
    /// @param verdict The `message` of the verdict's attestation, with `outcome` as an enum value.
    /// @param signature The attestation's `signature`.
    function execute(VerdictLib.Verdict calldata verdict, bytes calldata signature) external {
        bytes32 dealRefHash = verdict.dealRefHash;
        Deal storage deal = deals[dealRefHash];
        _requireUnsettled(dealRefHash, deal.status);
        if (verdict.conditionsSha256 != deal.conditionsSha256) {
            revert WrongConditions(verdict.conditionsSha256, deal.conditionsSha256);
        }
        VerdictLib.check(verdict, signature, ARBITER, MAX_AGE);

        if (verdict.outcome == VerdictLib.Outcome.Release) return _release(dealRefHash, deal, verdict.id);
        if (verdict.issuedAt < deal.deadline) revert IssuedBeforeDeadline(verdict.issuedAt, deal.deadline);
        if (verdict.outcome == VerdictLib.Outcome.Refund) return _refund(dealRefHash, deal, verdict.id);
        _escalate(dealRefHash, deal, verdict.id);
    }

    /// @notice Refunds a deal to its payer, who must be the caller, from `refundableFrom` on.
    /// @dev Reverts, in this order, with NotOpen, NotPayer or NotYetRefundable, with USDC's own error, or with
    /// TransferRefused.
    /// @param dealRefHash The Keccak-256 of the deal's `deal_ref`.
    function takeBack(bytes32 dealRefHash) external {
        Deal storage deal = deals[dealRefHash];
        _requireUnsettled(dealRefHash, deal.status);
        if (msg.sender != deal.payer) revert NotPayer(msg.sender, deal.payer);
        if (block.timestamp < deal.refundableFrom) revert NotYetRefundable(block.timestamp, deal.refundableFrom);

        _refund(dealRefHash, deal, "");
    }

    /// @notice Returns the EIP-712 digest that the arbiter signs for a verdict on this chain.
    /// @param verdict The verdict.
    /// @return hash The digest.
    function digestOf(VerdictLib.Verdict calldata verdict) external view returns (bytes32 hash) {
        return VerdictLib.digest(verdict);
    }

    /// @notice Returns a deal's `deal_ref`, even before the deal is opened: "0x" followed by the Keccak-256 of
    /// `abi.encode(chain id, this contract, payer, salt)` in lowercase hex. Only the payer can open a deal with it.
    /// @param payer The account that opens the deal.
    /// @param salt Distinguishes the payer's deals.
    /// @return dealRef The 66-character string.
    function dealRefOf(address payer, uint256 salt) public view returns (string memory dealRef) {
        bytes32 id = keccak256(abi.encode(block.chainid, address(this), payer, salt));
        bytes16 digits = "0123456789abcdef";
        bytes memory text = new bytes(66);
        (text[0], text[1]) = ("0", "x");
        for (uint256 i = 0; i < 32; i++) {
            text[2 + 2 * i] = digits[uint8(id[i]) >> 4];
            text[3 + 2 * i] = digits[uint8(id[i]) & 15];
        }
        return string(text);
    }

    function _requireUnsettled(bytes32 dealRefHash, Status status) private pure {
        if (status != Status.Open && status != Status.Escalated) revert NotOpen(dealRefHash, status);
    }

    function _release(bytes32 dealRefHash, Deal storage deal, string calldata verdictId) private {
        deal.status = Status.Released;
        emit Released(dealRefHash, deal.payee, deal.amount, verdictId);
        _pay(deal.payee, deal.amount);
    }

    function _refund(bytes32 dealRefHash, Deal storage deal, string memory verdictId) private {
        deal.status = Status.Refunded;
        emit Refunded(dealRefHash, deal.payer, deal.amount, verdictId);
        _pay(deal.payer, deal.amount);
    }

    /// @dev At most once per deal, and never postpones `refundableFrom`, so more escalations cannot delay the payer.
    function _escalate(bytes32 dealRefHash, Deal storage deal, string calldata verdictId) private {
        if (deal.status != Status.Open) revert NotOpen(dealRefHash, deal.status);
        deal.status = Status.Escalated;
        uint64 refundableFrom = uint64(block.timestamp) + ESCALATION_PERIOD;
        if (refundableFrom < deal.refundableFrom) deal.refundableFrom = refundableFrom;
        emit Escalated(dealRefHash, deal.refundableFrom, verdictId);
    }

    function _pay(address account, uint256 amount) private {
        if (!USDC.transfer(account, amount)) revert TransferRefused(account, amount);
    }
}
