// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {IAuthCaptureEscrow} from "../interfaces/IAuthCaptureEscrow.sol";
import {IEscrow} from "../interfaces/IEscrow.sol";
import {IUsdc} from "../interfaces/IUsdc.sol";

interface IBalance {
    function balanceOf(address account) external view returns (uint256 balance);
}

interface ICollect {
    function collectorType() external view returns (uint8 kind);
    function collectTokens(IEscrow.PaymentInfo calldata info, address store, uint256 amount, bytes calldata data) external;
}

/// @title AuthCaptureEscrowStandIn
/// @notice Stands in for base/commerce-payments' escrow, version 1.0, on local chains and in tests, at its canonical
/// address. It has the same selectors, hashes, events, errors and rules, written from the public interface. Its custody
/// is simpler, because it holds the tokens of all operators itself, and it supports USDC only. There is no `refund`
/// after a capture. For development and tests only.
/// @dev Nothing is immutable, so the runtime code works at any address.
contract AuthCaptureEscrowStandIn is IAuthCaptureEscrow {
    struct State {
        bool hasCollectedPayment;
        uint120 capturableAmount;
        uint120 refundableAmount;
    }

    error Reentrancy();
    error InvalidSender(address sender, address expected);
    error ZeroAmount();
    error AmountOverflow(uint256 amount, uint256 limit);
    error ExceedsMaxAmount(uint256 amount, uint256 maxAmount);
    error AfterPreApprovalExpiry(uint48 timestamp, uint48 expiry);
    error InvalidExpiries(uint48 preApproval, uint48 authorization, uint48 refund);
    error FeeBpsOverflow(uint16 feeBps);
    error InvalidFeeBpsRange(uint16 minFeeBps, uint16 maxFeeBps);
    error FeeBpsOutOfRange(uint16 feeBps, uint16 minFeeBps, uint16 maxFeeBps);
    error ZeroFeeReceiver();
    error InvalidFeeReceiver(address attempted, address expected);
    error InvalidCollectorForOperation();
    error TokenCollectionFailed();
    error PaymentAlreadyCollected(bytes32 paymentInfoHash);
    error AfterAuthorizationExpiry(uint48 timestamp, uint48 expiry);
    error InsufficientAuthorization(bytes32 paymentInfoHash, uint256 authorizedAmount, uint256 requestedAmount);
    error ZeroAuthorization(bytes32 paymentInfoHash);
    error BeforeAuthorizationExpiry(uint48 timestamp, uint48 expiry);

    event PaymentCharged(
        bytes32 indexed paymentInfoHash,
        IEscrow.PaymentInfo paymentInfo,
        uint256 amount,
        address tokenCollector,
        uint16 feeBps,
        address feeReceiver
    );
    event PaymentAuthorized(
        bytes32 indexed paymentInfoHash, IEscrow.PaymentInfo paymentInfo, uint256 amount, address tokenCollector
    );
    event PaymentCaptured(bytes32 indexed paymentInfoHash, uint256 amount, uint16 feeBps, address feeReceiver);
    event PaymentVoided(bytes32 indexed paymentInfoHash, uint256 amount);
    event PaymentReclaimed(bytes32 indexed paymentInfoHash, uint256 amount);

    bytes32 public constant PAYMENT_INFO_TYPEHASH = keccak256(
        "PaymentInfo(address operator,address payer,address receiver,address token,uint120 maxAmount,uint48 preApprovalExpiry,uint48 authorizationExpiry,uint48 refundExpiry,uint16 minFeeBps,uint16 maxFeeBps,address feeReceiver,uint256 salt)"
    );
    uint16 private constant WHOLE_BPS = 10_000;

    /// @inheritdoc IAuthCaptureEscrow
    mapping(bytes32 id => State state) public paymentState;
    bool private transient busy;

    modifier onlyBy(address account) {
        if (busy) revert Reentrancy();
        if (msg.sender != account) revert InvalidSender(msg.sender, account);
        busy = true;
        _;
        busy = false;
    }

    /// @inheritdoc IAuthCaptureEscrow
    function authorize(IEscrow.PaymentInfo calldata info, uint256 amount, address collector, bytes calldata data)
        external
        onlyBy(info.operator)
    {
        bytes32 id = _open(info, amount);
        paymentState[id] = State(true, uint120(amount), 0);
        emit PaymentAuthorized(id, info, amount, collector);
        _collect(info, amount, collector, data);
    }

    /// @notice Collects the payer's tokens and pays them out immediately. Only the payment's operator may call.
    function charge(
        IEscrow.PaymentInfo calldata info,
        uint256 amount,
        address collector,
        bytes calldata data,
        uint16 feeBps,
        address feeReceiver
    ) external onlyBy(info.operator) {
        _requireFee(info, feeBps, feeReceiver);
        bytes32 id = _open(info, amount);
        paymentState[id] = State(true, 0, uint120(amount));
        emit PaymentCharged(id, info, amount, collector, feeBps, feeReceiver);
        _collect(info, amount, collector, data);
        _distribute(info, amount, amount * feeBps / WHOLE_BPS, feeReceiver);
    }

    /// @notice Pays out the held amount, as version 1.0 does. Only the payment's operator may call.
    function capture(IEscrow.PaymentInfo calldata info, uint256 amount, uint16 feeBps, address feeReceiver)
        external
        virtual
        onlyBy(info.operator)
    {
        _requireFee(info, feeBps, feeReceiver);
        bytes32 id = _take(info, amount);
        emit PaymentCaptured(id, amount, feeBps, feeReceiver);
        _distribute(info, amount, amount * feeBps / WHOLE_BPS, feeReceiver);
    }

    /// @inheritdoc IAuthCaptureEscrow
    function void(IEscrow.PaymentInfo calldata info) external onlyBy(info.operator) {
        (bytes32 id, uint256 amount) = _empty(info);
        emit PaymentVoided(id, amount);
        IUsdc(info.token).transfer(info.payer, amount);
    }

    /// @inheritdoc IAuthCaptureEscrow
    function reclaim(IEscrow.PaymentInfo calldata info) external onlyBy(info.payer) {
        if (block.timestamp < info.authorizationExpiry) {
            revert BeforeAuthorizationExpiry(uint48(block.timestamp), info.authorizationExpiry);
        }
        (bytes32 id, uint256 amount) = _empty(info);
        emit PaymentReclaimed(id, amount);
        IUsdc(info.token).transfer(info.payer, amount);
    }

    /// @inheritdoc IAuthCaptureEscrow
    function getTokenStore(address) external view returns (address) {
        return address(this);
    }

    /// @inheritdoc IAuthCaptureEscrow
    function getHash(IEscrow.PaymentInfo calldata info) public view returns (bytes32) {
        return keccak256(abi.encode(block.chainid, address(this), keccak256(abi.encode(PAYMENT_INFO_TYPEHASH, info))));
    }

    /// @dev Checks a new payment, in the original's order.
    function _open(IEscrow.PaymentInfo calldata info, uint256 amount) private view returns (bytes32 id) {
        if (amount == 0) revert ZeroAmount();
        if (amount > type(uint120).max) revert AmountOverflow(amount, type(uint120).max);
        if (amount > info.maxAmount) revert ExceedsMaxAmount(amount, info.maxAmount);
        if (block.timestamp >= info.preApprovalExpiry) {
            revert AfterPreApprovalExpiry(uint48(block.timestamp), info.preApprovalExpiry);
        }
        if (info.preApprovalExpiry > info.authorizationExpiry || info.authorizationExpiry > info.refundExpiry) {
            revert InvalidExpiries(info.preApprovalExpiry, info.authorizationExpiry, info.refundExpiry);
        }
        if (info.maxFeeBps > WHOLE_BPS) revert FeeBpsOverflow(info.maxFeeBps);
        if (info.minFeeBps > info.maxFeeBps) revert InvalidFeeBpsRange(info.minFeeBps, info.maxFeeBps);
        id = getHash(info);
        if (paymentState[id].hasCollectedPayment) revert PaymentAlreadyCollected(id);
    }

    function _requireFee(IEscrow.PaymentInfo calldata info, uint16 feeBps, address feeReceiver) private pure {
        if (feeBps < info.minFeeBps || feeBps > info.maxFeeBps) {
            revert FeeBpsOutOfRange(feeBps, info.minFeeBps, info.maxFeeBps);
        }
        if (feeReceiver == address(0) && feeBps > 0) revert ZeroFeeReceiver();
        if (info.feeReceiver != address(0) && info.feeReceiver != feeReceiver) {
            revert InvalidFeeReceiver(feeReceiver, info.feeReceiver);
        }
    }

    function _collect(IEscrow.PaymentInfo calldata info, uint256 amount, address collector, bytes calldata data)
        private
    {
        if (ICollect(collector).collectorType() != 0) revert InvalidCollectorForOperation();
        uint256 before = IBalance(info.token).balanceOf(address(this));
        ICollect(collector).collectTokens(info, address(this), amount, data);
        if (IBalance(info.token).balanceOf(address(this)) != before + amount) revert TokenCollectionFailed();
    }

    function _take(IEscrow.PaymentInfo calldata info, uint256 amount) internal returns (bytes32 id) {
        if (amount == 0) revert ZeroAmount();
        if (amount > type(uint120).max) revert AmountOverflow(amount, type(uint120).max);
        if (block.timestamp >= info.authorizationExpiry) {
            revert AfterAuthorizationExpiry(uint48(block.timestamp), info.authorizationExpiry);
        }
        id = getHash(info);
        State storage state = paymentState[id];
        if (state.capturableAmount < amount) revert InsufficientAuthorization(id, state.capturableAmount, amount);
        state.capturableAmount -= uint120(amount);
        state.refundableAmount += uint120(amount);
    }

    function _empty(IEscrow.PaymentInfo calldata info) private returns (bytes32 id, uint256 amount) {
        id = getHash(info);
        amount = paymentState[id].capturableAmount;
        if (amount == 0) revert ZeroAuthorization(id);
        paymentState[id].capturableAmount = 0;
    }

    function _distribute(IEscrow.PaymentInfo calldata info, uint256 amount, uint256 fee, address feeReceiver) internal {
        if (fee > 0) IUsdc(info.token).transfer(feeReceiver, fee);
        if (amount > fee) IUsdc(info.token).transfer(info.receiver, amount - fee);
    }
}

/// @title AuthCaptureEscrowStandIn11
/// @notice The same as version 1.1, whose `capture` takes the fee as an amount.
contract AuthCaptureEscrowStandIn11 is AuthCaptureEscrowStandIn {
    error FeeAmountOutOfRange(uint256 feeAmount, uint256 least, uint256 greatest);

    /// @notice The function of version 1.0, which this version does not have.
    function capture(IEscrow.PaymentInfo calldata, uint256, uint16, address) external pure override {
        revert();
    }

    /// @notice Pays out the held amount. Only the payment's operator may call.
    function capture(IEscrow.PaymentInfo calldata info, uint256 amount, uint256 feeAmount, address feeReceiver)
        external
        onlyBy(info.operator)
    {
        (uint256 least, uint256 greatest) = (amount * info.minFeeBps / 10_000, amount * info.maxFeeBps / 10_000);
        if (feeAmount < least || feeAmount > greatest) revert FeeAmountOutOfRange(feeAmount, least, greatest);
        if (info.feeReceiver != feeReceiver) revert InvalidFeeReceiver(feeReceiver, info.feeReceiver);
        _take(info, amount);
        _distribute(info, amount, feeAmount, feeReceiver);
    }
}
