// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {AuthCaptureEscrowStandIn} from "../../../contracts/dev/AuthCaptureEscrowStandIn.sol";
import {IEscrow} from "../../../contracts/interfaces/IEscrow.sol";
import {EscrowFixture} from "./EscrowFixture.sol";

/// @notice Rejected terms, in the order of the checks: each test fixes one more fault than the one before.
contract EscrowTermsTest is EscrowFixture {
    IEscrow.PaymentInfo private info;
    uint256 private amount = 7;
    address private collector = STRANGER;

    function setUp() public override {
        super.setUp();
        info = terms(payer, USD);
        info.operator = STRANGER;
        info.receiver = address(0);
        info.token = STRANGER;
        info.minFeeBps = 99;
        info.maxFeeBps = 101;
        info.feeReceiver = STRANGER;
        info.authorizationExpiry = info.refundExpiry + 1;
        info.preApprovalExpiry = uint48(block.timestamp);
    }

    /// @dev The terms are rejected even with the payer's own signature.
    function refused(bytes memory reason) private {
        fund(payer, USD);
        bytes memory signature = paid(PAYER_KEY, info);
        vm.expectRevert(reason);
        escrow.authorize(info, amount, collector, signature);
        assertStatus(info, IEscrow.Status.None);
        assertBalance(store(), 0);
    }

    function test_1_anotherOperator() public {
        refused(abi.encodeWithSelector(IEscrow.WrongOperator.selector, STRANGER, address(escrow)));
    }

    function test_2_anotherCollector() public {
        info.operator = address(escrow);
        address other = custodian() == Custodian.Escrow ? COLLECTOR : address(escrow);
        address[3] memory others = [STRANGER, other, COLLECTOR_11];
        for (uint256 i = 0; i < others.length; i++) {
            collector = others[i];
            refused(abi.encodeWithSelector(IEscrow.WrongCollector.selector, others[i], payee()));
        }
    }

    function test_3_anotherToken() public {
        info.operator = address(escrow);
        collector = payee();
        refused(abi.encodeWithSelector(IEscrow.WrongToken.selector, STRANGER, address(USDC)));
    }

    function test_4_aReceiverThatCannotBePaid() public {
        pinParties();
        address[4] memory receivers = [address(0), address(escrow), custody(), address(USDC)];
        for (uint256 i = 0; i < receivers.length; i++) {
            info.receiver = receivers[i];
            refused(abi.encodeWithSelector(IEscrow.WrongReceiver.selector, receivers[i]));
        }
    }

    function pinParties() private {
        info.operator = address(escrow);
        collector = payee();
        info.token = address(USDC);
        info.receiver = MERCHANT;
    }

    function testFuzz_5_anotherFee(uint16 least, uint16 greatest) public {
        vm.assume(least != 100 && greatest != 100);
        pinParties();
        uint16[2][3] memory fees = [[least, greatest], [uint16(100), greatest], [least, uint16(100)]];
        for (uint256 i = 0; i < fees.length; i++) {
            (info.minFeeBps, info.maxFeeBps) = (fees[i][0], fees[i][1]);
            refused(abi.encodeWithSelector(IEscrow.WrongFee.selector, fees[i][0], fees[i][1], 100));
        }
    }

    function pinFees() private {
        pinParties();
        info.minFeeBps = info.maxFeeBps = 100;
    }

    function test_6_anotherReceiverOfTheFee() public {
        pinFees();
        address[2] memory others = [STRANGER, address(0)];
        for (uint256 i = 0; i < others.length; i++) {
            info.feeReceiver = others[i];
            refused(abi.encodeWithSelector(IEscrow.WrongFeeReceiver.selector, others[i], FEES));
        }
    }

    /// @dev base/commerce-payments would accept an amount of 1 from anybody.
    function testFuzz_7_anotherAmount(uint256 other) public {
        vm.assume(other != USD);
        pinFees();
        info.feeReceiver = FEES;
        uint256[4] memory others = [other, 1, USD - 1, USD + 1];
        for (uint256 i = 0; i < others.length; i++) {
            amount = others[i];
            refused(abi.encodeWithSelector(IEscrow.WrongAmount.selector, amount, USD));
        }
    }

    function testFuzz_7_lessThanTheMinimum(uint256 less) public {
        pinFees();
        info.feeReceiver = FEES;
        uint120[3] memory amounts = [uint120(0), uint120(less % MINIMUM), MINIMUM - 1];
        for (uint256 i = 0; i < amounts.length; i++) {
            (info.maxAmount, amount) = (amounts[i], amounts[i]);
            refused(abi.encodeWithSelector(IEscrow.BelowMinimum.selector, amount, MINIMUM));
        }
    }

    function test_8_timesOutOfOrder() public {
        pinFees();
        info.feeReceiver = FEES;
        amount = USD;
        uint48 time = uint48(block.timestamp);
        uint48 first = custodian() == Custodian.Escrow ? time : time + 7;
        uint48[3][3] memory times =
            [[first, time + 9, time + 8], [time + 9, time + 8, time + 9], [time + 9, time + 8, time + 7]];
        bytes4 kind = custodian() == Custodian.Escrow
            ? IEscrow.WrongExpiries.selector
            : AuthCaptureEscrowStandIn.InvalidExpiries.selector;
        for (uint256 i = 0; i < times.length; i++) {
            (info.preApprovalExpiry, info.authorizationExpiry, info.refundExpiry) =
                (times[i][0], times[i][1], times[i][2]);
            refused(abi.encodeWithSelector(kind, times[i][0], times[i][1], times[i][2]));
        }
    }

    function test_9_anApprovalThatHasExpired() public {
        pinFees();
        info.feeReceiver = FEES;
        amount = USD;
        info.authorizationExpiry = info.refundExpiry;
        refused(holdTooLate(info));
    }

    /// @dev Words with dirty upper bits would hash the same terms to a different id.
    function testFuzz_wordsWithExcessBitsAreRefused(uint256 field, uint256 bit) public {
        info = terms(payer, USD);
        fund(payer, USD);
        bytes memory data = abi.encodeCall(IEscrow.authorize, (info, USD, payee(), paid(PAYER_KEY, info)));
        vm.assertTrue(!callDirty(data, field, bit), "no such hold");
        assertBalance(payer, USD);
    }

    /// @dev Such words do not bypass the 30 minutes either, because another id has another `refundableFrom`.
    function testFuzz_wordsWithExcessBitsMoveNothingThatIsHeld(uint256 field, uint256 bit, bool byArbiter) public {
        info = held(USD);
        bytes[2] memory calls = [
            abi.encodeCall(IEscrow.refund, (info, RECORD, "")), abi.encodeCall(IEscrow.release, (info, RECORD, ""))
        ];
        for (uint256 i = 0; i < calls.length; i++) {
            vm.prank(byArbiter ? arbiter : STRANGER);
            vm.assertTrue(!callDirty(calls[i], field, bit), "no such decision");
        }
        assertStatus(info, IEscrow.Status.Held);
        assertBalance(store(), USD);
    }

    function callDirty(bytes memory data, uint256 field, uint256 bit) private returns (bool ok) {
        uint8[11] memory widths = [160, 160, 160, 160, 120, 48, 48, 48, 16, 16, 160];
        field = between(field, 0, 10);
        bit = between(bit, widths[field], 255);
        assembly ("memory-safe") {
            let word := add(add(data, 0x24), mul(field, 0x20))
            mstore(word, or(mload(word), shl(bit, 1)))
        }
        (ok,) = address(escrow).call(data);
    }
}

/// @notice The same tests over base/commerce-payments, which makes the last two checks.
contract OperatorTermsTest is EscrowTermsTest {
    function custodian() internal pure override returns (Custodian) {
        return Custodian.Commerce;
    }
}
