// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {IEscrow} from "../../../contracts/interfaces/IEscrow.sol";
import {EscrowFixture} from "./EscrowFixture.sol";

contract EscrowReleaseTest is EscrowFixture {
    function testFuzz_aReleasePaysTheMerchantLessOnePercentRoundedDown(uint120 amount) public {
        amount = uint120(between(amount, MINIMUM, type(uint120).max));
        IEscrow.PaymentInfo memory info = held(amount);
        uint256 fee = uint256(amount) / 100;
        expectEvent();
        emit IEscrow.Released(idOf(info), payer, MERCHANT, amount, fee, RECORD);
        vm.prank(arbiter);
        escrow.release(info, RECORD, "");
        assertStatus(info, IEscrow.Status.Released);
        assertBalance(MERCHANT, amount - fee);
        assertBalance(payer, 0);
        assertFees(fee);
    }

    function test_theFeeIsRoundedDown() public {
        uint120[5] memory amounts = [uint120(10_000), 10_099, 10_100, 10_199, 10_200];
        uint256[5] memory fees = [uint256(100), 200, 301, 402, 504];
        for (uint256 i = 0; i < amounts.length; i++) {
            IEscrow.PaymentInfo memory info = held(amounts[i]);
            vm.prank(arbiter);
            escrow.release(info, RECORD, "");
            assertFees(fees[i]);
        }
    }

    function testFuzz_anyoneSubmitsTheArbitersVerdict(address sender, bytes32 record) public {
        IEscrow.PaymentInfo memory info = held(USD);
        bytes memory signature = verdict(info, true, record);
        expectEvent();
        emit IEscrow.Released(idOf(info), payer, MERCHANT, USD, USD / 100, record);
        vm.prank(sender);
        escrow.release(info, record, signature);
        assertBalance(MERCHANT, USD - USD / 100);
    }

    function testFuzz_theArbiterNeedsNoVerdict(bytes calldata anything) public {
        IEscrow.PaymentInfo memory info = held(USD);
        vm.prank(arbiter);
        escrow.release(info, RECORD, anything);
        assertStatus(info, IEscrow.Status.Released);
    }

    function testFuzz_onlyTheArbiterReleases(address sender) public {
        vm.assume(sender != arbiter);
        IEscrow.PaymentInfo memory info = held(USD);
        vm.expectRevert(abi.encodeWithSelector(IEscrow.NotArbiter.selector, sender, arbiter));
        vm.prank(sender);
        escrow.release(info, RECORD, "");
        assertStatus(info, IEscrow.Status.Held);
    }

    function test_neitherPayerNorMerchantNorFeeRecipientReleases() public {
        IEscrow.PaymentInfo memory info = held(USD);
        address[3] memory senders = [payer, MERCHANT, FEES];
        for (uint256 i = 0; i < senders.length; i++) {
            vm.expectRevert(abi.encodeWithSelector(IEscrow.NotArbiter.selector, senders[i], arbiter));
            vm.prank(senders[i]);
            escrow.release(info, RECORD, "");
        }
    }

    function test_aReleaseIsPossibleUntilTheSecondBeforeAuthorizationExpiry() public {
        IEscrow.PaymentInfo memory info = held(USD);
        vm.warp(info.authorizationExpiry - 1);
        vm.prank(arbiter);
        escrow.release(info, RECORD, "");
        assertStatus(info, IEscrow.Status.Released);
    }

    function test_exactlyAtAuthorizationExpiryAReleaseIsTooLate() public {
        IEscrow.PaymentInfo memory info = held(USD);
        bytes memory signature = verdict(info, true, RECORD);
        vm.warp(info.authorizationExpiry);
        bytes memory reason = releaseTooLate(info);
        vm.expectRevert(reason);
        vm.prank(arbiter);
        escrow.release(info, RECORD, "");
        vm.expectRevert(reason);
        escrow.release(info, RECORD, signature);
        escrow.refund(info, 0, "");
        assertBalance(payer, USD);
    }

    function test_afterTheTimeoutAReleaseIsPossibleUntilSomebodyRefunds() public {
        IEscrow.PaymentInfo memory first = held(USD);
        IEscrow.PaymentInfo memory second = held(USD);
        vm.warp(block.timestamp + TIMEOUT + 1);
        escrow.release(first, RECORD, verdict(first, true, RECORD));
        assertStatus(first, IEscrow.Status.Released);
        escrow.refund(second, 0, "");
        bytes memory late = verdict(second, true, RECORD);
        refused(second, IEscrow.Status.Refunded, late);
    }

    function test_onlyAHeldPaymentIsReleased() public {
        IEscrow.PaymentInfo memory info = terms(payer, USD);
        bytes memory signature = verdict(info, true, RECORD);
        refused(info, IEscrow.Status.None, signature);
        fund(payer, USD);
        authorize(info, paid(PAYER_KEY, info));
        escrow.release(info, RECORD, signature);
        refused(info, IEscrow.Status.Released, signature);
        assertBalance(MERCHANT, USD - USD / 100);
    }

    function refused(IEscrow.PaymentInfo memory info, IEscrow.Status got, bytes memory signature) private {
        vm.expectRevert(notHeld(info, got, true));
        escrow.release(info, RECORD, signature);
    }

    /// @dev The id is a hash of all terms, so different terms are a different payment, which is not held.
    function testFuzz_noFieldCanBeChangedAfterwards(uint256 field, uint256 change) public virtual {
        IEscrow.PaymentInfo memory info = held(USD);
        IEscrow.PaymentInfo memory other = changed(info, field, change);
        refused(other, IEscrow.Status.None, verdict(other, true, RECORD));
        assertStatus(info, IEscrow.Status.Held);
    }
}
