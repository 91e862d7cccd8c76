// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {IArbiterOperator} from "./interfaces/IArbiterOperator.sol";
import {IAuthCaptureEscrow} from "./interfaces/IAuthCaptureEscrow.sol";
import {IEscrow} from "./interfaces/IEscrow.sol";

/// @title ArbiterOperator
/// @notice See IArbiterOperator.
contract ArbiterOperator is IArbiterOperator {
    /// @inheritdoc IArbiterOperator
    uint256 public constant MINIMUM = 10_000;
    uint48 private constant TIMEOUT = 30 minutes;
    uint16 private constant FEE_BPS = 100;
    uint256 private constant FEE_DIVISOR = 100;
    /// @dev `capture(PaymentInfo,uint256 amount,uint16 feeBps,address feeReceiver)`.
    uint32 private constant CAPTURE_WITH_BPS = 0x644cd79a;
    /// @dev `capture(PaymentInfo,uint256 amount,uint256 feeAmount,address feeReceiver)`.
    uint32 private constant CAPTURE_WITH_AMOUNT = 0x3efa46e1;
    uint32 private constant VOID = uint32(IAuthCaptureEscrow.void.selector);
    /// @dev Half the secp256k1 order. A higher s is a malleated form of the same signature.
    uint256 private constant GREATEST_S = 0x7fffffffffffffffffffffffffffffff5d576e7357a4501ddfe92f46681b20a0;

    bytes32 private constant DOMAIN_TYPEHASH =
        keccak256("EIP712Domain(string name,string version,uint256 chainId,address verifyingContract)");
    bytes32 private constant NAME_HASH = keccak256("Agent Payment Trust Escrow");
    bytes32 private constant VERSION_HASH = keccak256("1");

    /// @inheritdoc IArbiterOperator
    bytes32 public constant PAYMENT_INFO_TYPEHASH = keccak256(
        "PaymentInfo(address operator,address payer,address receiver,address token,uint120 maxAmount,uint48 preApprovalExpiry,uint48 authorizationExpiry,uint48 refundExpiry,uint16 minFeeBps,uint16 maxFeeBps,address feeReceiver,uint256 salt)"
    );
    /// @inheritdoc IArbiterOperator
    bytes32 public constant VERDICT_TYPEHASH = keccak256("Verdict(bytes32 paymentId,bool release,bytes32 record)");

    /// @inheritdoc IArbiterOperator
    address public immutable ESCROW;
    /// @inheritdoc IArbiterOperator
    address public immutable COLLECTOR;
    /// @inheritdoc IArbiterOperator
    address public immutable USDC;
    /// @inheritdoc IArbiterOperator
    address public immutable ARBITER;
    /// @inheritdoc IArbiterOperator
    address public immutable FEE_RECIPIENT;
    /// @inheritdoc IArbiterOperator
    bool public immutable FEE_IS_AMOUNT;

    /// @dev Zero if the payment was never held. Everything else about it is in the escrow that holds it.
    mapping(bytes32 id => uint48 time) private _refundableFrom;

    /// @param escrow The escrow of base/commerce-payments.
    /// @param collector Its collector for EIP-3009 authorizations.
    /// @param usdc Circle's USDC on this chain.
    /// @param arbiter The account that decides releases and refunds.
    /// @param feeRecipient The account that receives the fees.
    /// @param feeIsAmount Whether the escrow's `capture` takes the fee as an amount (version 1.1) or in basis points.
    constructor(
        address escrow,
        address collector,
        address usdc,
        address arbiter,
        address feeRecipient,
        bool feeIsAmount
    ) {
        if (escrow == address(0)) revert IEscrow.ZeroAddress();
        if (collector == address(0)) revert IEscrow.ZeroAddress();
        if (usdc == address(0)) revert IEscrow.ZeroAddress();
        if (arbiter == address(0)) revert IEscrow.ZeroAddress();
        if (feeRecipient == address(0)) revert IEscrow.ZeroAddress();
        ESCROW = escrow;
        COLLECTOR = collector;
        USDC = usdc;
        ARBITER = arbiter;
        FEE_RECIPIENT = feeRecipient;
        FEE_IS_AMOUNT = feeIsAmount;
        emit IEscrow.Opened(usdc, arbiter, feeRecipient);
    }

    /// @inheritdoc IArbiterOperator
    function authorize(IEscrow.PaymentInfo calldata info, uint256 amount, address collector, bytes calldata signature)
        external
    {
        _requireTerms(info, amount, collector);
        bytes32 id = _hash(info);
        uint48 refundableFrom = uint48(block.timestamp) + TIMEOUT;
        _refundableFrom[id] = refundableFrom;
        _emitHeld(id, info, refundableFrom);
        // Reverts for a payment that was held before, so a hold cannot be prolonged.
        IAuthCaptureEscrow(ESCROW).authorize(info, amount, collector, signature);
    }

    /// @inheritdoc IArbiterOperator
    function release(IEscrow.PaymentInfo calldata info, bytes32 record, bytes calldata verdict) external {
        bytes32 id = _hash(info);
        address speaker = _speaker(id, true, record, verdict);
        if (speaker != ARBITER) revert IEscrow.NotArbiter(speaker, ARBITER);

        uint256 amount = info.maxAmount;
        uint256 fee = amount / FEE_DIVISOR;
        emit IEscrow.Released(id, info.payer, info.receiver, amount, fee, record);
        _capture(info, amount, fee);
    }

    /// @inheritdoc IArbiterOperator
    function refund(IEscrow.PaymentInfo calldata info, bytes32 record, bytes calldata verdict) external {
        bytes32 id = _hash(info);
        address speaker = _speaker(id, false, record, verdict);
        if (speaker != ARBITER) {
            uint48 refundableFrom = _refundableFrom[id];
            if (refundableFrom == 0) revert IEscrow.WrongStatus(id, IEscrow.Status.None, IEscrow.Status.Held);
            if (block.timestamp < refundableFrom) {
                revert IEscrow.NotYetRefundable(speaker, ARBITER, block.timestamp, refundableFrom);
            }
            record = bytes32(0);
        }

        emit IEscrow.Refunded(id, info.payer, info.receiver, info.maxAmount, record);
        _void(info);
    }

    /// @inheritdoc IArbiterOperator
    function getHash(IEscrow.PaymentInfo calldata info) external view returns (bytes32) {
        return _hash(info);
    }

    /// @inheritdoc IArbiterOperator
    function payments(bytes32 id) external view returns (IEscrow.Status status, uint48 refundableFrom) {
        refundableFrom = _refundableFrom[id];
        if (refundableFrom == 0) return (IEscrow.Status.None, 0);
        (, uint120 held, uint120 released) = IAuthCaptureEscrow(ESCROW).paymentState(id);
        if (held > 0) return (IEscrow.Status.Held, refundableFrom);
        return (released > 0 ? IEscrow.Status.Released : IEscrow.Status.Refunded, refundableFrom);
    }

    /// @inheritdoc IArbiterOperator
    function DOMAIN_SEPARATOR() public view returns (bytes32) {
        return keccak256(abi.encode(DOMAIN_TYPEHASH, NAME_HASH, VERSION_HASH, block.chainid, address(this)));
    }

    /// @dev The escrow checks the times.
    function _requireTerms(IEscrow.PaymentInfo calldata info, uint256 amount, address collector) private view {
        if (info.operator != address(this)) revert IEscrow.WrongOperator(info.operator, address(this));
        if (collector != COLLECTOR) revert IEscrow.WrongCollector(collector, COLLECTOR);
        if (info.token != USDC) revert IEscrow.WrongToken(info.token, USDC);
        _requireReceiver(info.receiver);
        if (info.minFeeBps != FEE_BPS || info.maxFeeBps != FEE_BPS) {
            revert IEscrow.WrongFee(info.minFeeBps, info.maxFeeBps, FEE_BPS);
        }
        if (info.feeReceiver != FEE_RECIPIENT) revert IEscrow.WrongFeeReceiver(info.feeReceiver, FEE_RECIPIENT);
        if (amount != info.maxAmount) revert IEscrow.WrongAmount(amount, info.maxAmount);
        if (amount < MINIMUM) revert IEscrow.BelowMinimum(amount, MINIMUM);
    }

    /// @dev USDC paid to any of these could never move again; the USDC contract blacklists itself.
    function _requireReceiver(address receiver) private view {
        if (receiver == address(0) || receiver == address(this) || receiver == ESCROW || receiver == USDC) {
            revert IEscrow.WrongReceiver(receiver);
        }
    }

    /// @dev Separate function to avoid "stack too deep".
    function _emitHeld(bytes32 id, IEscrow.PaymentInfo calldata info, uint48 refundableFrom) private {
        emit IEscrow.Held(
            id,
            info.payer,
            info.receiver,
            info.maxAmount,
            info.preApprovalExpiry,
            info.authorizationExpiry,
            info.refundExpiry,
            info.salt,
            refundableFrom
        );
    }

    /// @dev Both versions use the same calldata layout. Solidity would check and copy each field of the terms again;
    /// the escrow checks the same words.
    function _capture(IEscrow.PaymentInfo calldata info, uint256 amount, uint256 fee) private {
        uint256 selector = FEE_IS_AMOUNT ? CAPTURE_WITH_AMOUNT : CAPTURE_WITH_BPS;
        if (!FEE_IS_AMOUNT) fee = FEE_BPS;
        address feeRecipient = FEE_RECIPIENT;
        address escrow = ESCROW;
        assembly ("memory-safe") {
            let free := mload(0x40)
            mstore(free, selector)
            calldatacopy(add(free, 0x20), info, 0x180)
            mstore(add(free, 0x1a0), amount)
            mstore(add(free, 0x1c0), fee)
            mstore(add(free, 0x1e0), feeRecipient)
            if iszero(call(gas(), escrow, 0, add(free, 0x1c), 0x1e4, 0, 0)) {
                returndatacopy(free, 0, returndatasize())
                revert(free, returndatasize())
            }
        }
    }

    /// @dev See `_capture`.
    function _void(IEscrow.PaymentInfo calldata info) private {
        uint256 selector = VOID;
        address escrow = ESCROW;
        assembly ("memory-safe") {
            let free := mload(0x40)
            mstore(free, selector)
            calldatacopy(add(free, 0x20), info, 0x180)
            if iszero(call(gas(), escrow, 0, add(free, 0x1c), 0x184, 0, 0)) {
                returndatacopy(free, 0, returndatasize())
                revert(free, returndatasize())
            }
        }
    }

    /// @dev Returns the account making the decision: the verdict's signer (zero if the signature is malformed), or the
    /// caller if it is the arbiter or passes no verdict.
    function _speaker(bytes32 id, bool isRelease, bytes32 record, bytes calldata verdict)
        private
        view
        returns (address)
    {
        if (msg.sender == ARBITER || verdict.length == 0) return msg.sender;
        bytes32 structHash = keccak256(abi.encode(VERDICT_TYPEHASH, id, isRelease, record));
        return _recover(keccak256(abi.encodePacked("\x19\x01", DOMAIN_SEPARATOR(), structHash)), verdict);
    }

    function _recover(bytes32 digest, bytes calldata signature) private pure returns (address) {
        if (signature.length != 65) return address(0);
        bytes32 s = bytes32(signature[32:64]);
        if (uint256(s) > GREATEST_S) return address(0);
        return ecrecover(digest, uint8(signature[64]), bytes32(signature[:32]), s);
    }

    /// @dev The base/commerce-payments hash of `info`. In calldata the struct is 12 consecutive words, the layout
    /// `abi.encode` produces.
    function _hash(IEscrow.PaymentInfo calldata info) private view returns (bytes32 hash) {
        bytes32 typehash = PAYMENT_INFO_TYPEHASH;
        address escrow = ESCROW;
        assembly ("memory-safe") {
            let free := mload(0x40)
            mstore(free, typehash)
            calldatacopy(add(free, 0x20), info, 0x180)
            mstore(add(free, 0x40), keccak256(free, 0x1a0))
            mstore(free, chainid())
            mstore(add(free, 0x20), escrow)
            hash := keccak256(free, 0x60)
        }
    }
}
