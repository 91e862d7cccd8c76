// SPDX-License-Identifier: UNLICENSED
pragma solidity 0.8.37;

import {VerdictLib} from "../VerdictLib.sol";
import {IERC20} from "./IERC20.sol";

/// @title VerdictEscrow
/// @notice An example of an escrow that executes the external arbiter's verdicts: it holds a payer's USDC for a deal and
/// pays it to the payee, or back to the payer. There is no owner, no upgrade, no pause and no fee.
///
/// A deal goes like this:
/// 1. The parties agree on the conditions, on a deadline and on a salt that the payer has not used here. `dealRefOf` says
///    the `deal_ref` that follows: a text that no other deal, contract or chain has. It goes into every claim.
/// 2. The payer approves the amount and calls `open`. The payee reads the deal from `Opened`, then works.
/// 3. Either party buys a verdict on the agreed conditions with this `deal_ref`, and anybody carries it to `execute`:
///    - release pays the payee, at any time before the USDC is gone;
///    - refund pays the payer, when it was issued at the deadline or later: before that, nothing is late;
///    - escalate, issued at the deadline or later, pays nobody. From `ESCALATION_PERIOD` later on the payer may take
///      the amount back. Until then the parties mend what kept the arbiter from an answer and buy another verdict.
/// 4. Without any verdict (the arbiter may be gone) the payer may take the amount back from `SILENCE_PERIOD` after the
///    deadline on.
///
/// So the payee bears the burden of proof: agree only on conditions that the payer cannot make unverifiable.
/// @dev The first verdict that is carried here counts, should there be several. A transfer that USDC refuses reverts and
/// leaves the deal as it was, to be tried again; no other deal notices. USDC that is sent here without a deal stays here.
/// Amounts are atomic units of USDC (1 USDC is 1,000,000); times are unix seconds.
contract VerdictEscrow {
    /// @notice What has become of a deal: from None to Open, from there perhaps to Escalated, and from either to Released
    /// or to Refunded, for ever.
    enum Status {
        None,
        Open,
        Escalated,
        Released,
        Refunded
    }

    /// @notice A deal. All but its last two fields are fixed when it is opened.
    struct Deal {
        address payer;
        uint64 deadline;
        address payee;
        uint256 amount;
        bytes32 conditionsSha256;
        /// @dev From this time on the payer may take the amount back.
        uint64 refundableFrom;
        Status status;
    }

    /// @notice An address given to the constructor is zero.
    error ZeroAddress();
    /// @notice The payee cannot be paid: it is zero or this contract.
    error WrongPayee(address got);
    /// @notice A deal is about more than nothing.
    error ZeroAmount();
    /// @notice The deadline is not in the future, or too far in it.
    error WrongDeadline(uint64 got, uint256 earliest, uint256 latest);
    /// @notice The payer has used this salt: a deal with the same `deal_ref` exists.
    error DealExists(bytes32 dealRefHash);
    /// @notice No such deal is open: there is none, it is settled, or it is escalated already.
    error NotOpen(bytes32 dealRefHash, Status got);
    /// @notice The verdict is on other conditions than the deal's.
    error WrongConditions(bytes32 got, bytes32 wanted);
    /// @notice Before the deadline only a release counts.
    error IssuedBeforeDeadline(uint64 issuedAt, uint64 deadline);
    /// @notice Only the payer takes the amount back.
    error NotPayer(address got, address wanted);
    /// @notice The payer cannot take the amount back yet.
    error NotYetRefundable(uint256 timestamp, uint64 refundableFrom);
    /// @notice USDC answered a transfer with false.
    error TransferRefused(address account, uint256 amount);

    /// @notice The payer's USDC is held.
    /// @param dealRef The `deal_ref` of the deal's claims, whose Keccak-256 is `dealRefHash`.
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
    /// @param refundableFrom From this time on the payer may take the amount back.
    event Escalated(bytes32 indexed dealRefHash, uint64 refundableFrom, string verdictId);
    /// @notice The payee was paid.
    event Released(bytes32 indexed dealRefHash, address indexed payee, uint256 amount, string verdictId);
    /// @notice The payer was paid back.
    /// @param verdictId Empty when the payer took the amount back.
    event Refunded(bytes32 indexed dealRefHash, address indexed payer, uint256 amount, string verdictId);

    /// @notice For how long after its date a verdict counts here.
    uint64 public constant MAX_AGE = 1 days;
    /// @notice How long the parties have after an escalation before the payer may take the amount back.
    uint64 public constant ESCALATION_PERIOD = 3 days;
    /// @notice How long after the deadline the payer may take the amount back when no verdict came.
    uint64 public constant SILENCE_PERIOD = 30 days;
    /// @notice How far ahead a deadline may be.
    uint64 public constant MAX_TERM = 365 days;

    /// @notice Circle's USDC on this chain.
    IERC20 public immutable USDC;
    /// @notice Whose verdicts count: the `signer` of the service's attestations.
    address public immutable ARBITER;

    /// @notice The deals, by the Keccak-256 of their `deal_ref`.
    mapping(bytes32 dealRefHash => Deal deal) public deals;

    /// @param usdc Circle's USDC on this chain.
    /// @param arbiter Whose verdicts count.
    constructor(IERC20 usdc, address arbiter) {
        if (address(usdc) == address(0) || arbiter == address(0)) revert ZeroAddress();
        USDC = usdc;
        ARBITER = arbiter;
    }

    /// @notice Holds the caller's USDC for a deal. The caller has approved the amount.
    /// @dev Reverts, in this order, with WrongPayee, ZeroAmount, WrongDeadline, DealExists, as USDC does, or with
    /// TransferRefused.
    /// @param payee Who is paid on a release.
    /// @param amount The amount.
    /// @param conditionsSha256 The `conditions_sha256` of every verdict on the agreed conditions.
    /// @param deadline From this time on a refund counts. Allow for the minute that a verdict takes.
    /// @param salt Tells the payer's deals apart.
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

    /// @notice Does what a verdict says with the deal that it names. Anybody may carry it.
    /// @dev Reverts, in this order, with NotOpen, WrongConditions, as VerdictLib.check does, with IssuedBeforeDeadline, as
    /// USDC does, or with TransferRefused.
    /// @param verdict The `message` of the verdict's attestation, `outcome` as a number.
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

    /// @notice Pays a deal's amount back to the caller, its payer: from `refundableFrom` on.
    /// @dev Reverts, in this order, with NotOpen, NotPayer, NotYetRefundable, as USDC does, or with TransferRefused.
    /// @param dealRefHash The Keccak-256 of the deal's `deal_ref`.
    function takeBack(bytes32 dealRefHash) external {
        Deal storage deal = deals[dealRefHash];
        _requireUnsettled(dealRefHash, deal.status);
        if (msg.sender != deal.payer) revert NotPayer(msg.sender, deal.payer);
        if (block.timestamp < deal.refundableFrom) revert NotYetRefundable(block.timestamp, deal.refundableFrom);

        _refund(dealRefHash, deal, "");
    }

    /// @notice What the arbiter signs of a verdict on this chain.
    /// @param verdict The verdict.
    /// @return hash Its EIP-712 digest.
    function digestOf(VerdictLib.Verdict calldata verdict) external view returns (bytes32 hash) {
        return VerdictLib.digest(verdict);
    }

    /// @notice The `deal_ref` of a deal, before it is opened too: "0x" and, in lower-case hex, the Keccak-256 of
    /// `abi.encode(chain id, this contract, payer, salt)`. Nobody but the payer can open a deal with it.
    /// @param payer Who opens the deal.
    /// @param salt Tells the payer's deals apart.
    /// @return dealRef The text, 66 characters.
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

    /// @dev Once a deal, and never to a later time: nobody delays the payer by more verdicts of this kind.
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
