// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {IEscrow} from "../../../contracts/interfaces/IEscrow.sol";
import {EscrowFixture} from "./EscrowFixture.sol";

contract EscrowRefundTest is EscrowFixture {
    function testFuzz_aRefundPaysThePayerInFull(uint120 amount) public {
        amount = uint120(between(amount, MINIMUM, type(uint120).max));
        IEscrow.PaymentInfo memory info = held(amount);
        expectEvent();
        emit IEscrow.Refunded(idOf(info), payer, MERCHANT, amount, RECORD);
        vm.prank(arbiter);
        escrow.refund(info, RECORD, "");
        assertStatus(info, IEscrow.Status.Refunded);
        assertBalance(payer, amount);
        assertFees(0);
    }

    function testFuzz_anyoneSubmitsTheArbitersVerdict(address sender, bytes32 record) public {
        IEscrow.PaymentInfo memory info = held(USD);
        bytes memory signature = verdict(info, false, record);
        expectEvent();
        emit IEscrow.Refunded(idOf(info), payer, MERCHANT, USD, record);
        vm.prank(sender);
        escrow.refund(info, record, signature);
        assertBalance(payer, USD);
    }

    function testFuzz_theArbiterNeedsNoVerdict(bytes calldata anything) public {
        IEscrow.PaymentInfo memory info = held(USD);
        vm.prank(arbiter);
        escrow.refund(info, RECORD, anything);
        assertStatus(info, IEscrow.Status.Refunded);
    }

    function testFuzz_after1799SecondsOnlyTheArbiterRefunds(address sender, uint256 elapsed) public {
        vm.assume(sender != arbiter);
        IEscrow.PaymentInfo memory info = held(USD);
        uint256 from = block.timestamp + 1800;
        vm.warp(block.timestamp + between(elapsed, 0, 1799));
        expectTooEarly(sender, from);
        vm.prank(sender);
        escrow.refund(info, RECORD, "");
        vm.warp(from - 1);
        expectTooEarly(sender, from);
        vm.prank(sender);
        escrow.refund(info, RECORD, "");
        assertStatus(info, IEscrow.Status.Held);
    }

    function expectTooEarly(address got, uint256 from) private {
        vm.expectRevert(
            abi.encodeWithSelector(IEscrow.NotYetRefundable.selector, got, arbiter, block.timestamp, from)
        );
    }

    /// @dev With any sender and any arguments, the payer is refunded, and the record in the event is zero.
    function testFuzz_after1800SecondsAnybodyRefunds(
        address sender,
        uint256 elapsed,
        bytes32 record,
        bytes calldata noVerdict
    ) public {
        vm.assume(sender != arbiter);
        IEscrow.PaymentInfo memory info = held(USD);
        vm.warp(block.timestamp + 1800 + between(elapsed, 0, 400 days));
        expectEvent();
        emit IEscrow.Refunded(idOf(info), payer, MERCHANT, USD, 0);
        vm.prank(sender);
        escrow.refund(info, record, noVerdict);
        assertBalance(payer, USD);
        assertStatus(info, IEscrow.Status.Refunded);
    }

    function test_exactlyAfter1800SecondsAnybodyRefunds() public {
        IEscrow.PaymentInfo memory info = held(USD);
        vm.warp(block.timestamp + 1800);
        vm.prank(STRANGER);
        escrow.refund(info, 0, "");
        assertBalance(payer, USD);
    }

    function test_theArbitersRecordCountsAfterTheTimeoutToo() public {
        IEscrow.PaymentInfo memory carried = held(USD);
        IEscrow.PaymentInfo memory own = held(USD);
        vm.warp(block.timestamp + 1 days);
        bytes memory signature = verdict(carried, false, RECORD);
        expectEvent();
        emit IEscrow.Refunded(idOf(carried), payer, MERCHANT, USD, RECORD);
        escrow.refund(carried, RECORD, signature);
        expectEvent();
        emit IEscrow.Refunded(idOf(own), payer, MERCHANT, USD, RECORD);
        vm.prank(arbiter);
        escrow.refund(own, RECORD, "");
    }

    function testFuzz_noFieldCanBeChangedAfterwards(uint256 field, uint256 change) public virtual {
        IEscrow.PaymentInfo memory info = changed(held(USD), field, change);
        fund(address(escrow), 1000 * uint256(USD));
        vm.warp(block.timestamp + 1800);
        bytes memory reason = notHeld(info, IEscrow.Status.None, false);
        vm.expectRevert(reason);
        escrow.refund(info, 0, "");
        vm.expectRevert(reason);
        vm.prank(arbiter);
        escrow.refund(info, RECORD, "");
        assertBalance(address(escrow), 1001 * uint256(USD));
    }
}
