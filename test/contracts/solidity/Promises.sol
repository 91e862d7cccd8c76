// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {IEscrow} from "../../../contracts/interfaces/IEscrow.sol";
import {ModelUsdc} from "./ModelUsdc.sol";
import {Vm} from "./Vm.sol";

/// @notice The promises of the escrow and the operator, as properties. Halmos proves each `check_` function for all
/// values (`npm run prove`), and Hardhat's fuzzer calls the same functions with likely ones. The bytecode is the
/// deployed one, and the token is a model that accepts every signature, so only accounts that cannot sign are excluded
/// as payers. If a call reverts, its property holds trivially because nothing has changed.
abstract contract Promises {
    /// @dev The terms that differ between sales.
    struct Sale {
        address payer;
        address receiver;
        uint120 amount;
        uint48 authorizationExpiry;
        uint256 salt;
    }

    /// @dev A call that may end a payment, and its time.
    struct Attempt {
        address sender;
        bytes32 record;
        bool hasVerdict;
        uint8 v;
        bytes32 r;
        bytes32 s;
        uint48 time;
    }

    /// @dev An account's USDC, and the escrow's debt to it.
    struct Wealth {
        uint256 balance;
        uint256 owed;
    }

    Vm internal constant vm = Vm(0x7109709ECfa91a80626fF3989D68f67F5b1DD12D);
    uint256 internal constant ARBITER_KEY = 0xa4b17e4;
    address internal constant ARBITER = 0xEe37a44cF33389cdd70360D9f4a830A5cd2c159c;
    address internal constant FEES = 0x000000000000000000000000000000000000Fee5;
    uint48 internal constant NOW = 1_800_000_000;
    uint120 internal constant MINIMUM = 10_000;
    bytes32 private constant INFO_TYPEHASH = keccak256(
        "PaymentInfo(address operator,address payer,address receiver,address token,uint120 maxAmount,uint48 preApprovalExpiry,uint48 authorizationExpiry,uint48 refundExpiry,uint16 minFeeBps,uint16 maxFeeBps,address feeReceiver,uint256 salt)"
    );
    bytes32 private constant DOMAIN_TYPEHASH =
        keccak256("EIP712Domain(string name,string version,uint256 chainId,address verifyingContract)");
    bytes32 private constant VERDICT_TYPEHASH = keccak256("Verdict(bytes32 paymentId,bool release,bytes32 record)");

    ModelUsdc internal usdc;
    IEscrow internal escrow;
    /// @dev The contract that ids bind and that holds the USDC.
    address internal custody;
    /// @dev The payee of the payer's authorization.
    address internal payee;

    function setUp() public {
        vm.warp(NOW);
        usdc = new ModelUsdc();
        install();
    }

    /// @dev Sets `escrow`, `custody` and `payee`.
    function install() internal virtual;

    /// @dev Returns whether the contract keeps amounts that the token refuses to pay.
    function owes() internal pure virtual returns (bool);

    /// @dev A hundredth, rounded down, in the contract's order of operations, because solvers do not see that other
    /// orders are equal.
    function feeOf(uint256 amount) internal pure virtual returns (uint256);

    /// @notice A hold takes exactly the signed amount from the payer, for terms that follow the published rules.
    function check_aHoldTakesWhatWasSigned(
        IEscrow.PaymentInfo memory info,
        uint256 amount,
        address collector,
        address sender,
        address other
    ) public {
        vm.assume(signs(info.payer) && other != info.payer && other != custody);
        usdc.mint(info.payer, amount);
        (uint256 before, uint256 others) = (usdc.balanceOf(custody), usdc.balanceOf(other));
        bytes32 id = idOf(info);
        vm.prank(sender);
        (bool ok,) = address(escrow).call(abi.encodeCall(IEscrow.authorize, (info, amount, collector, "")));
        if (!ok) return;
        vm.assertEq(usdc.balanceOf(info.payer), 0, "taken from the payer");
        vm.assertEq(usdc.balanceOf(custody), before + amount, "held");
        vm.assertEq(usdc.balanceOf(other), others, "no other account pays or is paid");
        vm.assertTrue(amount == info.maxAmount && amount >= MINIMUM, "the amount");
        vm.assertTrue(info.operator == address(escrow) && info.token == address(usdc), "operator and token");
        vm.assertTrue(info.minFeeBps == 100 && info.maxFeeBps == 100 && info.feeReceiver == FEES, "the fee");
        vm.assertTrue(info.receiver != address(0) && info.receiver != address(escrow), "a receiver that can be paid");
        vm.assertTrue(info.receiver != custody && info.receiver != address(usdc), "a receiver that can be paid");
        vm.assertTrue(block.timestamp < info.preApprovalExpiry, "in time");
        requireHeld(id, NOW + 30 minutes);
        info.payer = address(0);
        vm.assertEq(usdc.nonce(), idOf(info), "the nonce binds every term");
        vm.assertTrue(usdc.validity(0) == 0 && usdc.validity(1) == info.preApprovalExpiry, "as long as it was signed for");
    }

    /// @notice Only the arbiter releases, before the authorization ends. The fee goes to its recipient, the rest to the
    /// merchant, and nothing to any other account.
    function check_aReleaseIsTheArbiters(Sale memory sale, Attempt memory by, ModelUsdc.Answer answer, address other)
        public
    {
        IEscrow.PaymentInfo memory info = held(sale);
        vm.assume(other != info.receiver && other != FEES && other != custody);
        usdc.answer(info.receiver, possible(answer));
        (Wealth memory receiver, Wealth memory fees) = (wealthOf(info.receiver), wealthOf(FEES));
        (Wealth memory third, uint256 before) = (wealthOf(other), usdc.balanceOf(custody));
        if (!attempt(info, true, by)) return;
        vm.assertTrue(isArbiters(info, true, by), "by the arbiter");
        vm.assertTrue(by.time < info.authorizationExpiry, "before the authorization ends");
        requireEnded(info, IEscrow.Status.Released);
        uint256 fee = feeOf(info.maxAmount);
        uint256 gained = sum(wealthOf(info.receiver)) - sum(receiver);
        if (info.receiver == FEES) {
            vm.assertEq(gained, info.maxAmount, "all of it");
        } else {
            vm.assertEq(gained, info.maxAmount - fee, "the merchant's part");
            vm.assertEq(sum(wealthOf(FEES)) - sum(fees), fee, "the fee");
            fees.owed = wealthOf(FEES).owed - fees.owed;
        }
        requireSame(third, other);
        uint256 owed = wealthOf(info.receiver).owed - receiver.owed;
        if (info.receiver != FEES) owed += fees.owed;
        vm.assertEq(before - usdc.balanceOf(custody) + owed, info.maxAmount, "the unpaid amount remains");
    }

    /// @notice Before minute 30 only the arbiter refunds, and from then on anyone. The payer gets the full amount.
    function check_aRefundIsThePayers(Sale memory sale, Attempt memory by, ModelUsdc.Answer answer, address other)
        public
    {
        IEscrow.PaymentInfo memory info = held(sale);
        vm.assume(other != info.payer && other != custody);
        usdc.answer(info.payer, possible(answer));
        (Wealth memory payer, Wealth memory third) = (wealthOf(info.payer), wealthOf(other));
        uint256 before = usdc.balanceOf(custody);
        if (!attempt(info, false, by)) return;
        vm.assertTrue(by.time >= NOW + 30 minutes || isArbiters(info, false, by), "by the arbiter, or the clock");
        requireEnded(info, IEscrow.Status.Refunded);
        vm.assertEq(sum(wealthOf(info.payer)) - sum(payer), info.maxAmount, "all of it");
        requireSame(third, other);
        uint256 owed = wealthOf(info.payer).owed - payer.owed;
        vm.assertEq(before - usdc.balanceOf(custody) + owed, info.maxAmount, "the unpaid amount remains");
    }

    /// @notice From minute 30 on, anyone's refund returns the payer's money, if USDC pays.
    function check_fromMinute30AnybodyRefunds(Sale memory sale, address sender, uint48 time) public {
        IEscrow.PaymentInfo memory info = held(sale);
        vm.assume(time >= NOW + 30 minutes);
        Attempt memory by;
        (by.sender, by.time) = (sender, time);
        vm.assertTrue(attempt(info, false, by), "refunded");
        vm.assertEq(usdc.balanceOf(info.payer), info.maxAmount, "all of it");
    }

    /// @notice An ended payment is final, for the arbiter too. It cannot end or be held again.
    function check_aPaymentEndsOnce(Sale memory sale, bool released, uint8 again, Attempt memory by) public {
        IEscrow.PaymentInfo memory info = held(sale);
        Attempt memory first;
        (first.sender, first.time) = (ARBITER, NOW);
        if (!attempt(info, released, first)) return;
        usdc.mint(info.payer, info.maxAmount);
        bool ok;
        if (again == 0) {
            vm.prank(by.sender);
            (ok,) = address(escrow).call(abi.encodeCall(IEscrow.authorize, (info, info.maxAmount, payee, "")));
        } else {
            ok = attempt(info, again == 1, by);
        }
        vm.assertTrue(!ok, "once");
        requireEnded(info, released ? IEscrow.Status.Released : IEscrow.Status.Refunded);
    }

    /// @notice The end of one payment leaves every other payment and its money unchanged.
    function check_otherPaymentsStay(Sale memory sale, Sale memory another, bool isRelease) public {
        IEscrow.PaymentInfo memory info = held(sale);
        bytes32 other = idOf(terms(another));
        vm.assume(idOf(info) != other);
        held(another);
        Attempt memory by;
        (by.sender, by.time) = (ARBITER, NOW);
        if (!attempt(info, isRelease, by)) return;
        requireHeld(other, NOW + 30 minutes);
        vm.assertTrue(usdc.balanceOf(custody) >= another.amount, "its money is there");
    }

    /// @dev The stand-in does not model a token that returns false, because the escrow that holds the payment handles
    /// it.
    function possible(ModelUsdc.Answer answer) private pure returns (ModelUsdc.Answer) {
        return answer == ModelUsdc.Answer.ReturnsFalse && !owes() ? ModelUsdc.Answer.Reverts : answer;
    }

    /// @dev Deploys the production bytecode.
    function create(string memory name, bytes memory arguments) internal returns (address instance) {
        bytes memory code = bytes.concat(vm.getCode(string.concat(name, ".sol:", name)), arguments);
        assembly ("memory-safe") {
            instance := create(0, add(code, 0x20), mload(code))
        }
        vm.assertTrue(instance != address(0), "deployed");
    }

    function terms(Sale memory sale) internal view returns (IEscrow.PaymentInfo memory) {
        return IEscrow.PaymentInfo({
            operator: address(escrow),
            payer: sale.payer,
            receiver: sale.receiver,
            token: address(usdc),
            maxAmount: sale.amount,
            preApprovalExpiry: NOW + 1,
            authorizationExpiry: sale.authorizationExpiry,
            refundExpiry: type(uint48).max,
            minFeeBps: 100,
            maxFeeBps: 100,
            feeReceiver: FEES,
            salt: sale.salt
        });
    }

    /// @dev A held payment by a payer with exactly its amount. Refused terms are skipped.
    function held(Sale memory sale) internal returns (IEscrow.PaymentInfo memory info) {
        info = terms(sale);
        vm.assume(signs(info.payer));
        usdc.mint(info.payer, info.maxAmount);
        (bool ok,) = address(escrow).call(abi.encodeCall(IEscrow.authorize, (info, info.maxAmount, payee, "")));
        vm.assume(ok);
    }

    /// @dev Returns false for our contracts and the model, which sign no authorization.
    function signs(address account) internal view returns (bool) {
        return account != custody && account != payee && account != address(escrow) && account != address(usdc);
    }

    function attempt(IEscrow.PaymentInfo memory info, bool isRelease, Attempt memory by) internal returns (bool ok) {
        vm.assume(by.time >= NOW);
        vm.warp(by.time);
        bytes memory verdict = by.hasVerdict ? abi.encodePacked(by.r, by.s, by.v) : bytes("");
        vm.prank(by.sender);
        (ok,) = address(escrow).call(
            isRelease
                ? abi.encodeCall(IEscrow.release, (info, by.record, verdict))
                : abi.encodeCall(IEscrow.refund, (info, by.record, verdict))
        );
    }

    /// @dev Returns whether the arbiter calls, or has signed this decision.
    function isArbiters(IEscrow.PaymentInfo memory info, bool isRelease, Attempt memory by)
        internal
        view
        returns (bool)
    {
        if (by.sender == ARBITER) return true;
        return by.hasVerdict && ecrecover(digestOf(info, isRelease, by.record), by.v, by.r, by.s) == ARBITER;
    }

    function digestOf(IEscrow.PaymentInfo memory info, bool isRelease, bytes32 record) internal view returns (bytes32) {
        bytes32 domain = keccak256(
            abi.encode(
                DOMAIN_TYPEHASH,
                keccak256("Agent Payment Trust Escrow"),
                keccak256("1"),
                block.chainid,
                address(escrow)
            )
        );
        bytes32 structHash = keccak256(abi.encode(VERDICT_TYPEHASH, idOf(info), isRelease, record));
        return keccak256(abi.encodePacked("\x19\x01", domain, structHash));
    }

    function idOf(IEscrow.PaymentInfo memory info) internal view returns (bytes32) {
        return keccak256(abi.encode(block.chainid, custody, keccak256(abi.encode(INFO_TYPEHASH, info))));
    }

    function requireHeld(bytes32 id, uint48 wanted) internal view {
        (IEscrow.Status status, uint48 refundableFrom) = escrow.payments(id);
        vm.assertTrue(status == IEscrow.Status.Held && refundableFrom == wanted, "held, for 30 minutes");
    }

    function requireEnded(IEscrow.PaymentInfo memory info, IEscrow.Status wanted) internal view {
        (IEscrow.Status status,) = escrow.payments(idOf(info));
        vm.assertTrue(status == wanted, "one end");
    }

    function requireSame(Wealth memory before, address account) internal view {
        Wealth memory wealth = wealthOf(account);
        vm.assertTrue(wealth.balance == before.balance && wealth.owed == before.owed, "no third destination");
    }

    function wealthOf(address account) internal view returns (Wealth memory) {
        return Wealth(usdc.balanceOf(account), owes() ? escrow.owed(account) : 0);
    }

    function sum(Wealth memory wealth) internal pure returns (uint256) {
        return wealth.balance + wealth.owed;
    }
}
