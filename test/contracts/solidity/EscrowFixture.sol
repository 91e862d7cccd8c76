// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {AuthCaptureEscrowStandIn} from "../../../contracts/dev/AuthCaptureEscrowStandIn.sol";
import {IAuthCaptureEscrow} from "../../../contracts/interfaces/IAuthCaptureEscrow.sol";
import {IEscrow} from "../../../contracts/interfaces/IEscrow.sol";
import {CommerceFixture} from "./CommerceFixture.sol";

/// @notice An escrow deployed from the production bytecode, with signers for both sides. Hashes are computed from the
/// published formulas, never read from the contract. Tests with another custodian are about the operator, which has the
/// same calls, errors and events as the escrow.
abstract contract EscrowFixture is CommerceFixture {
    /// @dev The holder of the USDC: the escrow itself, or base/commerce-payments 1.0 or 1.1 for the operator.
    enum Custodian {
        Escrow,
        Commerce,
        Commerce11
    }

    uint256 internal constant ARBITER_KEY = 0xa4b17e4;
    uint256 internal constant PAYER_KEY = 0x9a7e4;
    address internal constant FEES = 0x000000000000000000000000000000000000Fee5;
    address internal constant MERCHANT = 0x00000000000000000000000000000000C0ffee02;
    address internal constant STRANGER = 0x0000000000000000000000000000000000057a46;
    bytes32 internal constant RECORD = keccak256("the public verdict document");
    uint256 internal constant TIMEOUT = 1800;
    uint120 internal constant USD = 1_000_000;
    uint120 internal constant MINIMUM = 10_000;

    bytes32 internal constant INFO_TYPEHASH = keccak256(
        "PaymentInfo(address operator,address payer,address receiver,address token,uint120 maxAmount,uint48 preApprovalExpiry,uint48 authorizationExpiry,uint48 refundExpiry,uint16 minFeeBps,uint16 maxFeeBps,address feeReceiver,uint256 salt)"
    );
    bytes32 private constant DOMAIN_TYPEHASH =
        keccak256("EIP712Domain(string name,string version,uint256 chainId,address verifyingContract)");

    IEscrow internal escrow;
    address internal arbiter;
    address internal payer;
    uint256 private salt;

    function setUp() public virtual {
        installUsdc();
        if (custodian() != Custodian.Escrow) installCommerce();
        arbiter = vm.addr(ARBITER_KEY);
        payer = vm.addr(PAYER_KEY);
        escrow = newEscrow();
    }

    function newEscrow() internal returns (IEscrow) {
        if (custodian() == Custodian.Escrow) return deploy(address(USDC), arbiter, FEES);
        return IEscrow(
            deployOperator(
                [custody(), payee(), address(USDC), arbiter, FEES], custodian() == Custodian.Commerce11
            )
        );
    }

    function deploy(address usdc, address arbiter_, address fees) internal returns (IEscrow) {
        return IEscrow(create("Escrow", abi.encode(usdc, arbiter_, fees)));
    }

    /// @dev The roles are the escrow that holds, its collector, USDC, the arbiter and the fee recipient.
    function deployOperator(address[5] memory roles, bool feeIsAmount) internal returns (address) {
        return create("ArbiterOperator", abi.encode(roles, feeIsAmount));
    }

    function custodian() internal pure virtual returns (Custodian) {
        return Custodian.Escrow;
    }

    /// @dev The contract that ids and nonces bind.
    function custody() internal view returns (address) {
        if (custodian() == Custodian.Escrow) return address(escrow);
        return address(custodian() == Custodian.Commerce ? COMMERCE : COMMERCE_11);
    }

    /// @dev The payee of the payer's authorization: the collector.
    function payee() internal view returns (address) {
        if (custodian() == Custodian.Escrow) return address(escrow);
        return custodian() == Custodian.Commerce ? COLLECTOR : COLLECTOR_11;
    }

    /// @dev The account that holds the USDC.
    function store() internal view returns (address) {
        if (custodian() == Custodian.Escrow) return address(escrow);
        return IAuthCaptureEscrow(custody()).getTokenStore(address(escrow));
    }

    /// @dev The error of a release or a refund of a payment that has the status `got` and is not held.
    function notHeld(IEscrow.PaymentInfo memory info, IEscrow.Status got, bool isRelease)
        internal
        view
        returns (bytes memory)
    {
        bytes32 id = idOf(info);
        if (custodian() == Custodian.Escrow) {
            return abi.encodeWithSelector(IEscrow.WrongStatus.selector, id, got, IEscrow.Status.Held);
        }
        if (!isRelease) return abi.encodeWithSelector(AuthCaptureEscrowStandIn.ZeroAuthorization.selector, id);
        bytes4 kind = AuthCaptureEscrowStandIn.InsufficientAuthorization.selector;
        return abi.encodeWithSelector(kind, id, 0, info.maxAmount);
    }

    /// @dev The error of a second hold of a payment that has the status `got`.
    function heldAlready(IEscrow.PaymentInfo memory info, IEscrow.Status got) internal view returns (bytes memory) {
        bytes32 id = idOf(info);
        if (custodian() == Custodian.Escrow) {
            return abi.encodeWithSelector(IEscrow.WrongStatus.selector, id, got, IEscrow.Status.None);
        }
        return abi.encodeWithSelector(AuthCaptureEscrowStandIn.PaymentAlreadyCollected.selector, id);
    }

    /// @dev The error of a hold now, from `preApprovalExpiry` on.
    function holdTooLate(IEscrow.PaymentInfo memory info) internal view returns (bytes memory) {
        bytes4 kind = custodian() == Custodian.Escrow
            ? IEscrow.PreApprovalExpired.selector
            : AuthCaptureEscrowStandIn.AfterPreApprovalExpiry.selector;
        return abi.encodeWithSelector(kind, block.timestamp, info.preApprovalExpiry);
    }

    /// @dev The error of a release exactly at `authorizationExpiry`.
    function releaseTooLate(IEscrow.PaymentInfo memory info) internal pure returns (bytes memory) {
        bytes4 kind = custodian() == Custodian.Escrow
            ? IEscrow.AuthorizationExpired.selector
            : AuthCaptureEscrowStandIn.AfterAuthorizationExpiry.selector;
        return abi.encodeWithSelector(kind, info.authorizationExpiry, info.authorizationExpiry);
    }

    /// @dev Asserts that releases have earned the fee recipient this amount, and that nothing else is held.
    function assertFees(uint256 wanted) internal view {
        bool isOwed = custodian() == Custodian.Escrow;
        if (isOwed) assertOwed(FEES, wanted);
        assertBalance(FEES, isOwed ? 0 : wanted);
        assertBalance(store(), isOwed ? wanted : 0);
    }

    function terms(address from, uint120 amount) internal returns (IEscrow.PaymentInfo memory info) {
        uint48 time = uint48(block.timestamp);
        info = IEscrow.PaymentInfo({
            operator: address(escrow),
            payer: from,
            receiver: MERCHANT,
            token: address(USDC),
            maxAmount: amount,
            preApprovalExpiry: time + 600,
            authorizationExpiry: time + 1 days,
            refundExpiry: time + 2 days,
            minFeeBps: 100,
            maxFeeBps: 100,
            feeReceiver: FEES,
            salt: ++salt
        });
    }

    function idOf(IEscrow.PaymentInfo memory info) internal view returns (bytes32) {
        return idOf(info, block.chainid, custody());
    }

    function idOf(IEscrow.PaymentInfo memory info, uint256 chain, address instance) internal pure returns (bytes32) {
        bytes memory first = abi.encode(
            INFO_TYPEHASH, info.operator, info.payer, info.receiver, info.token, info.maxAmount, info.preApprovalExpiry
        );
        bytes memory second = abi.encode(
            info.authorizationExpiry, info.refundExpiry, info.minFeeBps, info.maxFeeBps, info.feeReceiver, info.salt
        );
        return keccak256(abi.encode(chain, instance, keccak256(bytes.concat(first, second))));
    }

    function nonceOf(IEscrow.PaymentInfo memory info) internal view returns (bytes32) {
        return nonceOf(info, block.chainid, custody());
    }

    function nonceOf(IEscrow.PaymentInfo memory info, uint256 chain, address instance)
        internal
        pure
        returns (bytes32 nonce)
    {
        address from = info.payer;
        info.payer = address(0);
        nonce = idOf(info, chain, instance);
        info.payer = from;
    }

    function authorizationHash(bytes32 typehash, IEscrow.PaymentInfo memory info) internal view returns (bytes32) {
        return authorizationHash(typehash, info, nonceOf(info), payee());
    }

    function authorizationHash(bytes32 typehash, IEscrow.PaymentInfo memory info, bytes32 nonce, address to)
        internal
        pure
        returns (bytes32)
    {
        return keccak256(abi.encode(typehash, info.payer, to, info.maxAmount, 0, info.preApprovalExpiry, nonce));
    }

    /// @dev The payer's signature authorizing a hold with these terms.
    function paid(uint256 key, IEscrow.PaymentInfo memory info) internal view returns (bytes memory) {
        return signed(key, usdcDigest(authorizationHash(RECEIVE_TYPEHASH, info)));
    }

    function verdictDigest(bytes32 id, bool release, bytes32 record, uint256 chain, address instance)
        internal
        pure
        returns (bytes32)
    {
        bytes32 domain = keccak256(
            abi.encode(DOMAIN_TYPEHASH, keccak256("Agent Payment Trust Escrow"), keccak256("1"), chain, instance)
        );
        bytes32 typehash = keccak256("Verdict(bytes32 paymentId,bool release,bytes32 record)");
        bytes32 structHash = keccak256(abi.encode(typehash, id, release, record));
        return keccak256(abi.encodePacked("\x19\x01", domain, structHash));
    }

    /// @dev The arbiter's signed verdict on these terms, for this chain and this escrow.
    function verdict(IEscrow.PaymentInfo memory info, bool release, bytes32 record)
        internal
        view
        returns (bytes memory)
    {
        return signed(ARBITER_KEY, verdictDigest(idOf(info), release, record, block.chainid, address(escrow)));
    }

    /// @dev Creates a held payment from the default payer.
    function held(uint120 amount) internal returns (IEscrow.PaymentInfo memory info) {
        info = terms(payer, amount);
        fund(payer, amount);
        authorize(info, paid(PAYER_KEY, info));
    }

    function authorize(IEscrow.PaymentInfo memory info, bytes memory signature) internal {
        escrow.authorize(info, info.maxAmount, payee(), signature);
    }

    function statusOf(IEscrow.PaymentInfo memory info) internal view returns (IEscrow.Status status) {
        (status,) = escrow.payments(idOf(info));
    }

    function assertStatus(IEscrow.PaymentInfo memory info, IEscrow.Status wanted) internal view {
        vm.assertEq(uint256(statusOf(info)), uint256(wanted), "status");
    }

    function assertBalance(address account, uint256 wanted) internal view {
        vm.assertEq(USDC.balanceOf(account), wanted, "USDC balance");
    }

    function assertOwed(address account, uint256 wanted) internal view {
        vm.assertEq(escrow.owed(account), wanted, "owed");
    }

    function expectEvent() internal {
        vm.expectEmit(true, true, true, true, address(escrow));
    }

    /// @dev Returns a copy of the terms with bits flipped in one of the twelve fields, within that field's width.
    function changed(IEscrow.PaymentInfo memory info, uint256 field, uint256 change)
        internal
        pure
        returns (IEscrow.PaymentInfo memory other)
    {
        other = abi.decode(abi.encode(info), (IEscrow.PaymentInfo));
        field = between(field, 0, 11);
        uint256 width = [160, 160, 160, 160, 120, 48, 48, 48, 16, 16, 160, 256][field];
        change = between(change, 1, width == 256 ? type(uint256).max - 1 : (1 << width) - 1);
        assembly ("memory-safe") {
            let word := add(other, mul(field, 0x20))
            mstore(word, xor(mload(word), change))
        }
    }
}
