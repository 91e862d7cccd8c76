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

    /// @dev The id is a hash of all terms, so different terms are a different payment, which is not held.
    function testFuzz_noFieldCanBeChangedAfterwards(uint256 field, uint256 change) public virtual {
        IEscrow.PaymentInfo memory info = held(USD);
        IEscrow.PaymentInfo memory other = changed(info, field, change);
        bytes memory signature = verdict(other, true, RECORD);
        vm.expectRevert(notHeld(other, IEscrow.Status.None, true));
        escrow.release(other, RECORD, signature);
        assertStatus(info, IEscrow.Status.Held);
    }
}
