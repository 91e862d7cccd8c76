// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {IEscrow} from "../../../contracts/interfaces/IEscrow.sol";
import {EscrowFixture} from "./EscrowFixture.sol";
import {IFiatToken} from "./IFiatToken.sol";

/// @notice Payouts that USDC rejects are credited, and `withdraw` pays only the account that is owed.
contract EscrowPayoutTest is EscrowFixture {
    bytes private constant BLACKLISTED = "Blacklistable: account is blacklisted";

    function release(IEscrow.PaymentInfo memory info) private {
        vm.prank(arbiter);
        escrow.release(info, RECORD, "");
    }

    function testFuzz_aReleaseToABlacklistedMerchantIsFinalAndOwed(uint120 amount) public {
        amount = uint120(between(amount, MINIMUM, type(uint120).max));
        IEscrow.PaymentInfo memory info = held(amount);
        uint256 rest = amount - uint256(amount) / 100;
        setBlacklisted(MERCHANT, true);
        expectEvent();
        emit IEscrow.Credited(idOf(info), MERCHANT, rest);
        release(info);
        assertStatus(info, IEscrow.Status.Released);
        assertOwed(MERCHANT, rest);
        assertOwed(FEES, uint256(amount) / 100);
        assertBalance(address(escrow), amount);
        vm.expectRevert(BLACKLISTED);
        escrow.withdraw(MERCHANT);
        assertOwed(MERCHANT, rest);
        setBlacklisted(MERCHANT, false);
        escrow.withdraw(MERCHANT);
        assertBalance(MERCHANT, rest);
        assertOwed(MERCHANT, 0);
    }

    function test_verdictsAndTheTimeoutWorkWhileUsdcIsPausedOrTheEscrowIsBlacklisted() public {
        for (uint256 i = 0; i < 2; i++) {
            IEscrow.PaymentInfo[3] memory infos = [held(USD), held(USD), held(USD)];
            setPaused(i == 0);
            setBlacklisted(address(escrow), i == 1);
            release(infos[0]);
            escrow.refund(infos[1], RECORD, verdict(infos[1], false, RECORD));
            vm.warp(block.timestamp + TIMEOUT);
            escrow.refund(infos[2], 0, "");
            assertStatus(infos[0], IEscrow.Status.Released);
            assertStatus(infos[1], IEscrow.Status.Refunded);
            assertStatus(infos[2], IEscrow.Status.Refunded);
            assertOwed(MERCHANT, USD - USD / 100);
            assertOwed(payer, 2 * USD);
            setPaused(false);
            setBlacklisted(address(escrow), false);
            escrow.withdraw(MERCHANT);
            escrow.withdraw(payer);
            escrow.withdraw(FEES);
            assertBalance(address(escrow), 0);
        }
        assertBalance(payer, 4 * USD);
    }

    function testFuzz_aWithdrawalPaysTheAccountAllOfIt(uint8 releases, address sender) public {
        uint256 count = between(releases, 1, 20);
        for (uint256 i = 0; i < count; i++) {
            release(held(USD));
        }
        uint256 fees = count * (USD / 100);
        assertOwed(FEES, fees);
        expectEvent();
        emit IEscrow.Withdrawn(FEES, fees);
        vm.prank(sender);
        vm.assertEq(escrow.withdraw(FEES), fees, "the amount");
        assertBalance(FEES, fees);
        assertOwed(FEES, 0);
    }

    function testFuzz_anAccountThatIsOwedNothingIsPaidNothing(address account) public {
        vm.assume(account != FEES);
        release(held(USD));
        vm.expectRevert(abi.encodeWithSelector(IEscrow.NothingOwed.selector, account));
        escrow.withdraw(account);
        escrow.withdraw(FEES);
        vm.expectRevert(abi.encodeWithSelector(IEscrow.NothingOwed.selector, FEES));
        escrow.withdraw(FEES);
    }

    function test_aDebtSurvivesAWithdrawalThatUsdcAnswersWithFalse() public {
        release(held(USD));
        vm.mockCall(address(USDC), abi.encodeWithSelector(IFiatToken.transfer.selector), abi.encode(false));
        vm.expectRevert(abi.encodeWithSelector(IEscrow.WithdrawalRefused.selector, FEES, USD / 100));
        escrow.withdraw(FEES);
        vm.clearMockedCalls();
        assertOwed(FEES, USD / 100);
        escrow.withdraw(FEES);
        assertBalance(FEES, USD / 100);
    }

    function test_aPayoutThatUsdcAnswersWithFalseIsOwed() public {
        IEscrow.PaymentInfo memory info = held(USD);
        vm.mockCall(address(USDC), abi.encodeWithSelector(IFiatToken.transfer.selector), abi.encode(false));
        expectEvent();
        emit IEscrow.Credited(idOf(info), MERCHANT, USD - USD / 100);
        release(info);
        vm.clearMockedCalls();
        assertOwed(MERCHANT, USD - USD / 100);
    }
}
