// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {IEscrow} from "./interfaces/IEscrow.sol";
import {IUsdc} from "./interfaces/IUsdc.sol";

/// @title Escrow
/// @notice See IEscrow.
contract Escrow is IEscrow {
    /// @dev Fits in one storage slot. The amount is not stored: the id commits to the terms, `maxAmount` included.
    struct Payment {
        Status status;
        uint48 refundableFrom;
    }

    /// @inheritdoc IEscrow
    uint256 public constant MINIMUM = 10_000;
    uint48 private constant TIMEOUT = 30 minutes;
    uint16 private constant FEE_BPS = 100;
    uint256 private constant FEE_DIVISOR = 100;
    /// @dev A call that runs out of gas leaves 1/64 of the gas (EIP-150), plus 1/64 for each proxy behind it.
    uint256 private constant STARVED_DIVISOR = 16;
    /// @dev Half the secp256k1 order. A higher s is a malleated form of the same signature.
    uint256 private constant GREATEST_S = 0x7fffffffffffffffffffffffffffffff5d576e7357a4501ddfe92f46681b20a0;

    bytes32 private constant DOMAIN_TYPEHASH =
        keccak256("EIP712Domain(string name,string version,uint256 chainId,address verifyingContract)");
    bytes32 private constant NAME_HASH = keccak256("Agent Payment Trust Escrow");
    bytes32 private constant VERSION_HASH = keccak256("1");

    /// @inheritdoc IEscrow
    bytes32 public constant PAYMENT_INFO_TYPEHASH = keccak256(
        "PaymentInfo(address operator,address payer,address receiver,address token,uint120 maxAmount,uint48 preApprovalExpiry,uint48 authorizationExpiry,uint48 refundExpiry,uint16 minFeeBps,uint16 maxFeeBps,address feeReceiver,uint256 salt)"
    );
    /// @inheritdoc IEscrow
    bytes32 public constant VERDICT_TYPEHASH = keccak256("Verdict(bytes32 paymentId,bool release,bytes32 record)");

    /// @inheritdoc IEscrow
    address public immutable USDC;
    /// @inheritdoc IEscrow
    address public immutable ARBITER;
    /// @inheritdoc IEscrow
    address public immutable FEE_RECIPIENT;

    /// @inheritdoc IEscrow
    mapping(bytes32 id => Payment payment) public payments;
    /// @inheritdoc IEscrow
    mapping(address account => uint256 amount) public owed;

    /// @param usdc Circle's USDC on this chain.
    /// @param arbiter The account that decides releases and refunds.
    /// @param feeRecipient The account to which fees are owed.
    constructor(address usdc, address arbiter, address feeRecipient) {
        if (usdc == address(0)) revert ZeroAddress();
        if (arbiter == address(0)) revert ZeroAddress();
        if (feeRecipient == address(0)) revert ZeroAddress();
        USDC = usdc;
        ARBITER = arbiter;
        FEE_RECIPIENT = feeRecipient;
        emit Opened(usdc, arbiter, feeRecipient);
    }

    /// @inheritdoc IEscrow
    function authorize(PaymentInfo calldata info, uint256 amount, address collector, bytes calldata signature)
        external
    {
        _requireTerms(info, amount, collector);
        bytes32 id = _hash(info, info.payer);
        Payment storage payment = payments[id];
        _requireStatus(id, payment.status, Status.None);

        uint48 refundableFrom = uint48(block.timestamp) + TIMEOUT;
        (payment.status, payment.refundableFrom) = (Status.Held, refundableFrom);
        _emitHeld(id, info, refundableFrom);
        IUsdc(USDC).receiveWithAuthorization(
            info.payer, address(this), amount, 0, info.preApprovalExpiry, _hash(info, address(0)), signature
        );
    }

    /// @inheritdoc IEscrow
    function release(PaymentInfo calldata info, bytes32 record, bytes calldata verdict) external {
        bytes32 id = _hash(info, info.payer);
        Payment storage payment = payments[id];
        _requireStatus(id, payment.status, Status.Held);
        address speaker = _speaker(id, true, record, verdict);
        if (speaker != ARBITER) revert NotArbiter(speaker, ARBITER);
        if (block.timestamp >= info.authorizationExpiry) {
            revert AuthorizationExpired(block.timestamp, info.authorizationExpiry);
        }

        uint256 fee = info.maxAmount / FEE_DIVISOR;
        payment.status = Status.Released;
        owed[FEE_RECIPIENT] += fee;
        emit Released(id, info.payer, info.receiver, info.maxAmount, fee, record);
        _pay(id, info.receiver, info.maxAmount - fee);
    }

    /// @inheritdoc IEscrow
    function refund(PaymentInfo calldata info, bytes32 record, bytes calldata verdict) external {
        bytes32 id = _hash(info, info.payer);
        Payment storage payment = payments[id];
        _requireStatus(id, payment.status, Status.Held);
        address speaker = _speaker(id, false, record, verdict);
        if (speaker != ARBITER) {
            if (block.timestamp < payment.refundableFrom) {
                revert NotYetRefundable(speaker, ARBITER, block.timestamp, payment.refundableFrom);
            }
            record = bytes32(0);
        }

        payment.status = Status.Refunded;
        emit Refunded(id, info.payer, info.receiver, info.maxAmount, record);
        _pay(id, info.payer, info.maxAmount);
    }

    /// @inheritdoc IEscrow
    function withdraw(address account) external returns (uint256 amount) {
        amount = owed[account];
        if (amount == 0) revert NothingOwed(account);

        owed[account] = 0;
        emit Withdrawn(account, amount);
        if (!IUsdc(USDC).transfer(account, amount)) revert WithdrawalRefused(account, amount);
    }

    /// @inheritdoc IEscrow
    function getHash(PaymentInfo calldata info) external view returns (bytes32) {
        return _hash(info, info.payer);
    }

    /// @inheritdoc IEscrow
    function getPayerAgnosticHash(PaymentInfo calldata info) external view returns (bytes32) {
        return _hash(info, address(0));
    }

    /// @inheritdoc IEscrow
    function DOMAIN_SEPARATOR() public view returns (bytes32) {
        return keccak256(abi.encode(DOMAIN_TYPEHASH, NAME_HASH, VERSION_HASH, block.chainid, address(this)));
    }

    /// @dev USDC rejects expired authorizations too. This check names the error, and no hold outlives its terms.
    function _requireTerms(PaymentInfo calldata info, uint256 amount, address collector) private view {
        if (info.operator != address(this)) revert WrongOperator(info.operator, address(this));
        if (collector != address(this)) revert WrongCollector(collector, address(this));
        if (info.token != USDC) revert WrongToken(info.token, USDC);
        _requireReceiver(info.receiver);
        if (info.minFeeBps != FEE_BPS || info.maxFeeBps != FEE_BPS) {
            revert WrongFee(info.minFeeBps, info.maxFeeBps, FEE_BPS);
        }
        if (info.feeReceiver != FEE_RECIPIENT) revert WrongFeeReceiver(info.feeReceiver, FEE_RECIPIENT);
        if (amount != info.maxAmount) revert WrongAmount(amount, info.maxAmount);
        if (amount < MINIMUM) revert BelowMinimum(amount, MINIMUM);
        if (info.preApprovalExpiry > info.authorizationExpiry || info.authorizationExpiry > info.refundExpiry) {
            revert WrongExpiries(info.preApprovalExpiry, info.authorizationExpiry, info.refundExpiry);
        }
        if (block.timestamp >= info.preApprovalExpiry) {
            revert PreApprovalExpired(block.timestamp, info.preApprovalExpiry);
        }
    }

    /// @dev USDC paid or owed to any of these could never move again; the USDC contract blacklists itself.
    function _requireReceiver(address receiver) private view {
        if (receiver == address(0) || receiver == address(this) || receiver == USDC) revert WrongReceiver(receiver);
    }

    function _requireStatus(bytes32 id, Status got, Status wanted) private pure {
        if (got != wanted) revert WrongStatus(id, got, wanted);
    }

    /// @dev Separate function to avoid "stack too deep".
    function _emitHeld(bytes32 id, PaymentInfo calldata info, uint48 refundableFrom) private {
        emit Held(
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

    /// @dev Credits a rejected transfer, so a verdict is final. Reverts on a starved one: the caller sets the gas limit
    /// and must not be able to choose between push and pull with it.
    function _pay(bytes32 id, address account, uint256 amount) private {
        uint256 gasBefore = gasleft();
        try IUsdc(USDC).transfer(account, amount) returns (bool paid) {
            if (paid) return;
        } catch {
            uint256 wanted = gasBefore / STARVED_DIVISOR;
            if (gasleft() < wanted) revert PayoutStarved(gasleft(), wanted);
        }
        owed[account] += amount;
        emit Credited(id, account, amount);
    }

    /// @dev The base/commerce-payments hash of `info` with its payer replaced by `payer`. In calldata the struct is 12
    /// consecutive words, the layout `abi.encode` produces; the payer is the second.
    function _hash(PaymentInfo calldata info, address payer) private view returns (bytes32 hash) {
        bytes32 typehash = PAYMENT_INFO_TYPEHASH;
        assembly ("memory-safe") {
            let free := mload(0x40)
            mstore(free, typehash)
            calldatacopy(add(free, 0x20), info, 0x180)
            mstore(add(free, 0x40), payer)
            mstore(add(free, 0x40), keccak256(free, 0x1a0))
            mstore(free, chainid())
            mstore(add(free, 0x20), address())
            hash := keccak256(free, 0x60)
        }
    }
}
