// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {SmartWallet} from "../../../contracts/dev/SmartWallet.sol";
import {IEscrow} from "../../../contracts/interfaces/IEscrow.sol";
import {EscrowFixture} from "./EscrowFixture.sol";

/// @notice Successful holds and their timing.
contract EscrowAuthorizeTest is EscrowFixture {
    function testFuzz_aHoldMovesExactlyTheSignedAmount(uint120 amount, uint256 extra, address sender) public {
        amount = uint120(between(amount, MINIMUM, type(uint120).max));
        extra = between(extra, 0, 1000 * uint256(USD));
        IEscrow.PaymentInfo memory info = terms(payer, amount);
        fund(payer, amount + extra);
        bytes memory signature = paid(PAYER_KEY, info);
        uint48 refundableFrom = uint48(block.timestamp + TIMEOUT);
        expectEvent();
        emit IEscrow.Held(
            idOf(info),
            payer,
            MERCHANT,
            amount,
            info.preApprovalExpiry,
            info.authorizationExpiry,
            info.refundExpiry,
            info.salt,
            refundableFrom
        );
        vm.prank(sender);
        authorize(info, signature);
        assertBalance(payer, extra);
        assertBalance(store(), amount);
        if (custodian() != Custodian.Escrow) assertBalance(address(escrow), 0);
        (IEscrow.Status status, uint48 from) = escrow.payments(idOf(info));
        vm.assertEq(uint256(status), uint256(IEscrow.Status.Held), "status");
        vm.assertEq(from, refundableFrom, "refundableFrom");
        vm.assertTrue(USDC.authorizationState(payer, nonceOf(info)), "the nonce is used");
    }

    function testFuzz_theHashesEqualCommercePayments(IEscrow.PaymentInfo memory info, uint64 chain)
        public
        virtual
    {
        vm.chainId(between(chain, 1, type(uint64).max));
        vm.assertEq(escrow.getHash(info), idOf(info), "id");
        vm.assertEq(escrow.getPayerAgnosticHash(info), nonceOf(info), "nonce");
        vm.assertEq(escrow.PAYMENT_INFO_TYPEHASH(), INFO_TYPEHASH, "typehash");
    }

    function test_theSmallestAmountIsTheMinimum() public {
        vm.assertEq(escrow.MINIMUM(), MINIMUM, "published");
        assertStatus(held(MINIMUM), IEscrow.Status.Held);
    }

    function test_theSmallestTimesInOrderWillDo() public {
        IEscrow.PaymentInfo memory info = terms(payer, USD);
        info.preApprovalExpiry = uint48(block.timestamp + 1);
        info.authorizationExpiry = info.preApprovalExpiry;
        info.refundExpiry = info.preApprovalExpiry;
        fund(payer, USD);
        authorize(info, paid(PAYER_KEY, info));
        assertStatus(info, IEscrow.Status.Held);
    }

    function test_aHoldIsPossibleUntilTheSecondBeforePreApprovalExpiry() public {
        IEscrow.PaymentInfo memory info = terms(payer, USD);
        fund(payer, USD);
        bytes memory signature = paid(PAYER_KEY, info);
        vm.warp(info.preApprovalExpiry - 1);
        authorize(info, signature);
        assertStatus(info, IEscrow.Status.Held);
    }

    function test_exactlyAtPreApprovalExpiryAHoldIsTooLate() public {
        IEscrow.PaymentInfo memory info = terms(payer, USD);
        fund(payer, USD);
        bytes memory signature = paid(PAYER_KEY, info);
        vm.warp(info.preApprovalExpiry);
        vm.expectRevert(holdTooLate(info));
        authorize(info, signature);
    }

    /// @dev A second attempt also leaves the time of the refund where it was.
    function test_aPaymentIsHeldOnce() public {
        IEscrow.PaymentInfo memory info = held(USD);
        vm.warp(block.timestamp + 60);
        refuseAgain(info, IEscrow.Status.Held);
        vm.prank(arbiter);
        escrow.release(info, RECORD, "");
        refuseAgain(info, IEscrow.Status.Released);
        info = held(USD);
        vm.prank(arbiter);
        escrow.refund(info, RECORD, "");
        refuseAgain(info, IEscrow.Status.Refunded);
    }

    function refuseAgain(IEscrow.PaymentInfo memory info, IEscrow.Status got) private {
        fund(payer, USD);
        bytes memory signature = paid(PAYER_KEY, info);
        (, uint48 before) = escrow.payments(idOf(info));
        vm.expectRevert(heldAlready(info, got));
        authorize(info, signature);
        (, uint48 from) = escrow.payments(idOf(info));
        vm.assertEq(from, before, "refundableFrom");
        assertStatus(info, got);
    }

    function testFuzz_aSmartWalletPaysByItsOwnersSignature(uint256 ownerKey, uint256 strangerKey) public {
        ownerKey = between(ownerKey, 1, type(uint128).max);
        strangerKey = between(strangerKey, 1, type(uint128).max);
        vm.assume(ownerKey != strangerKey);
        address wallet = address(new SmartWallet(vm.addr(ownerKey)));
        IEscrow.PaymentInfo memory info = terms(wallet, USD);
        fund(wallet, USD);
        bytes memory forged = paid(strangerKey, info);
        vm.expectRevert("FiatTokenV2: invalid signature");
        authorize(info, forged);
        authorize(info, paid(ownerKey, info));
        assertStatus(info, IEscrow.Status.Held);
        vm.warp(block.timestamp + TIMEOUT);
        escrow.refund(info, 0, "");
        assertBalance(wallet, USD);
    }

    function test_payersWithTheSameTermsHaveTheSameNonceAndTheirOwnPayments() public {
        IEscrow.PaymentInfo memory info = held(USD);
        IEscrow.PaymentInfo memory other = abi.decode(abi.encode(info), (IEscrow.PaymentInfo));
        other.payer = vm.addr(PAYER_KEY + 1);
        vm.assertEq(nonceOf(info), nonceOf(other), "nonce");
        fund(other.payer, USD);
        authorize(other, paid(PAYER_KEY + 1, other));
        assertBalance(store(), 2 * USD);
        vm.prank(arbiter);
        escrow.refund(other, RECORD, "");
        assertStatus(info, IEscrow.Status.Held);
        assertBalance(other.payer, USD);
    }
}
