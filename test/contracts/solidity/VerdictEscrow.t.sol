// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {VerdictLib} from "../../../contracts/VerdictLib.sol";
import {IERC20} from "../../../contracts/interfaces/IERC20.sol";
import {VerdictEscrow} from "../../../contracts/examples/VerdictEscrow.sol";
import {VerdictEscrowFixture} from "./VerdictEscrowFixture.sol";

/// @notice Effects of verdicts on a deal of the example escrow, and forbidden actions.
contract VerdictEscrowTest is VerdictEscrowFixture {
    bytes32 private deal;
    uint64 private deadline;

    function setUp() public override {
        super.setUp();
        deal = opened(USD, 1);
        deadline = uint64(block.timestamp) + TERM;
    }

    function testFuzz_aReleasePaysThePayeeForAnySender(address carrier, uint64 wait) public {
        vm.warp(block.timestamp + between(wait, 0, 60 days));
        expectEvent();
        emit VerdictEscrow.Released(deal, PAYEE, USD, "0123456789abcdef");
        vm.prank(carrier);
        execute(RELEASE, deal);
        assertStatus(deal, VerdictEscrow.Status.Released);
        assertBalances(0, USD, 0);
    }

    function testFuzz_fromTheDeadlineOnARefundPaysThePayer(address carrier, uint64 wait) public {
        vm.warp(deadline + between(wait, 0, 60 days));
        expectEvent();
        emit VerdictEscrow.Refunded(deal, PAYER, USD, "0123456789abcdef");
        vm.prank(carrier);
        execute(REFUND, deal);
        assertStatus(deal, VerdictEscrow.Status.Refunded);
        assertBalances(USD, 0, 0);
    }

    /// @dev The payee is not late before the deadline: a refund or escalation issued earlier never counts, even if
    /// submitted later.
    function test_oneSecondBeforeTheDeadlineOnlyAReleaseCounts() public {
        vm.warp(deadline - 1);
        VerdictLib.Verdict[2] memory early = [verdictOf(REFUND, deal), verdictOf(ESCALATE, deal)];
        for (uint256 i = 0; i < 4; i++) {
            bytes memory signature = attested(early[i % 2]);
            vm.expectRevert(
                abi.encodeWithSelector(VerdictEscrow.IssuedBeforeDeadline.selector, deadline - 1, deadline)
            );
            escrow.execute(early[i % 2], signature);
            if (i == 1) vm.warp(deadline);
        }
        assertStatus(deal, VerdictEscrow.Status.Open);
        execute(RELEASE, deal);
    }

    function testFuzz_aVerdictOnNoDealOfThisEscrowIsRefused(bytes32 other) public {
        vm.assume(other != deal);
        VerdictLib.Verdict memory verdict = verdictOf(RELEASE, other);
        bytes memory signature = attested(verdict);
        expectNotOpen(other, VerdictEscrow.Status.None);
        escrow.execute(verdict, signature);
    }

    /// @dev With the same payer, payee and salt, a verdict for one instance does not apply to the other's deal.
    function test_aVerdictOfAnotherInstanceIsRefused() public {
        VerdictEscrow first = escrow;
        escrow = new VerdictEscrow(IERC20(address(USDC)), arbiter);
        bytes32 other = opened(USD, 1);
        vm.assertTrue(other != deal, "another reference");
        VerdictLib.Verdict memory verdict = verdictOf(RELEASE, deal);
        bytes memory signature = attested(verdict);
        expectNotOpen(deal, VerdictEscrow.Status.None);
        escrow.execute(verdict, signature);
        first.execute(verdict, signature);
    }

    function testFuzz_aVerdictOnOtherConditionsIsRefused(bytes32 conditions) public {
        vm.assume(conditions != CONDITIONS);
        VerdictLib.Verdict memory verdict = verdictOf(RELEASE, deal);
        verdict.conditionsSha256 = conditions;
        bytes memory signature = attested(verdict);
        vm.expectRevert(abi.encodeWithSelector(VerdictEscrow.WrongConditions.selector, conditions, CONDITIONS));
        escrow.execute(verdict, signature);
    }

    function test_aVerdictCountsForADay() public {
        VerdictLib.Verdict memory verdict = verdictOf(RELEASE, deal);
        bytes memory signature = attested(verdict);
        uint256 expiry = block.timestamp + 1 days;
        vm.warp(expiry + 1);
        vm.expectRevert(abi.encodeWithSelector(VerdictLib.VerdictExpired.selector, expiry + 1, expiry));
        escrow.execute(verdict, signature);
        vm.warp(expiry);
        escrow.execute(verdict, signature);
    }

    function test_anEscalationOpensTheWayBackThreeDaysLater() public {
        vm.warp(deadline);
        expectEvent();
        emit VerdictEscrow.Escalated(deal, deadline + 3 days, "0123456789abcdef");
        execute(ESCALATE, deal);
        assertStatus(deal, VerdictEscrow.Status.Escalated);
        assertBalances(0, 0, USD);
        vm.warp(deadline + 1 days);
        VerdictLib.Verdict memory again = verdictOf(ESCALATE, deal);
        bytes memory signature = attested(again);
        expectNotOpen(deal, VerdictEscrow.Status.Escalated);
        escrow.execute(again, signature);
        takenBackFrom(deadline + 3 days);
    }

    function test_withoutAnyVerdictThePayerTakesBack30DaysAfterTheDeadline() public {
        takenBackFrom(deadline + 30 days);
    }

    /// @dev Asserts that only the payer can take the amount back, and not a second earlier.
    function takenBackFrom(uint64 time) private {
        vm.assertEq(refundableFromOf(deal), time, "refundableFrom");
        vm.warp(time - 1);
        vm.prank(PAYER);
        vm.expectRevert(abi.encodeWithSelector(VerdictEscrow.NotYetRefundable.selector, time - 1, time));
        escrow.takeBack(deal);
        vm.warp(time);
        vm.prank(PAYEE);
        vm.expectRevert(abi.encodeWithSelector(VerdictEscrow.NotPayer.selector, PAYEE, PAYER));
        escrow.takeBack(deal);
        expectEvent();
        emit VerdictEscrow.Refunded(deal, PAYER, USD, "");
        vm.prank(PAYER);
        escrow.takeBack(deal);
        assertStatus(deal, VerdictEscrow.Status.Refunded);
        assertBalances(USD, 0, 0);
    }

    function test_aRefusedPayoutCanBeRetriedAndBlocksNoOtherDeal() public {
        bytes32 other = opened(2 * USD, 2);
        VerdictLib.Verdict memory verdict = verdictOf(RELEASE, deal);
        bytes memory signature = attested(verdict);
        setBlacklisted(PAYEE, true);
        vm.expectRevert("Blacklistable: account is blacklisted");
        escrow.execute(verdict, signature);
        vm.warp(deadline);
        execute(REFUND, other);
        assertBalances(2 * USD, 0, USD);
        setBlacklisted(PAYEE, false);
        execute(RELEASE, deal);
        assertBalances(2 * USD, USD, 0);
    }

    function test_aPayoutThatUsdcAnswersWithFalseReverts() public {
        VerdictLib.Verdict memory verdict = verdictOf(RELEASE, deal);
        bytes memory signature = attested(verdict);
        vm.mockCall(address(USDC), abi.encodePacked(IERC20.transfer.selector), abi.encode(false));
        vm.expectRevert(abi.encodeWithSelector(VerdictEscrow.TransferRefused.selector, PAYEE, USD));
        escrow.execute(verdict, signature);
        vm.clearMockedCalls();
        assertStatus(deal, VerdictEscrow.Status.Open);
        escrow.execute(verdict, signature);
        assertBalances(0, USD, 0);
    }
}
