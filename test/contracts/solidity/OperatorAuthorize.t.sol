// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {AuthCaptureEscrowStandIn} from "../../../contracts/dev/AuthCaptureEscrowStandIn.sol";
import {SmartWallet} from "../../../contracts/dev/SmartWallet.sol";
import {IAuthCaptureEscrow} from "../../../contracts/interfaces/IAuthCaptureEscrow.sol";
import {IEscrow} from "../../../contracts/interfaces/IEscrow.sol";
import {OperatorFixture} from "./OperatorFixture.sol";

/// @notice Successful holds, their timing, and what nobody can do with a payer's signature.
contract OperatorAuthorizeTest is OperatorFixture {
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
        assertBalance(address(escrow), 0);
        (IEscrow.Status status, uint48 from) = escrow.payments(idOf(info));
        vm.assertEq(uint256(status), uint256(IEscrow.Status.Held), "status");
        vm.assertEq(from, refundableFrom, "refundableFrom");
        vm.assertTrue(USDC.authorizationState(payer, nonceOf(info)), "the nonce is used");
    }

    function testFuzz_theHashIsThatOfTheEscrow(IEscrow.PaymentInfo memory info, uint64 chain) public {
        vm.chainId(between(chain, 1, type(uint64).max));
        vm.assertEq(escrow.getHash(info), idOf(info), "id");
        vm.assertEq(COMMERCE.getHash(info), idOf(info), "the escrow's id");
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

    /// @dev A second attempt also leaves the time of the refund where it was.
    function test_aPaymentIsHeldOnce() public {
        IEscrow.PaymentInfo memory info = held(USD);
        vm.warp(block.timestamp + 60);
        refuseAgain(info);
        vm.prank(arbiter);
        escrow.release(info, RECORD, "");
        refuseAgain(info);
        assertStatus(info, IEscrow.Status.Released);
        info = held(USD);
        vm.prank(arbiter);
        escrow.refund(info, RECORD, "");
        refuseAgain(info);
        assertStatus(info, IEscrow.Status.Refunded);
    }

    function refuseAgain(IEscrow.PaymentInfo memory info) private {
        fund(payer, USD);
        bytes memory signature = paid(PAYER_KEY, info);
        (, uint48 before) = escrow.payments(idOf(info));
        vm.expectRevert(
            abi.encodeWithSelector(AuthCaptureEscrowStandIn.PaymentAlreadyCollected.selector, idOf(info))
        );
        authorize(info, signature);
        (, uint48 from) = escrow.payments(idOf(info));
        vm.assertEq(from, before, "refundableFrom");
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

    /// @dev Not the payer, not the merchant, not the arbiter: the escrow obeys the operator alone.
    function testFuzz_nobodyGoesPastTheOperator(address sender) public {
        vm.assume(sender != address(escrow));
        IEscrow.PaymentInfo memory info = terms(payer, USD);
        fund(payer, USD);
        bytes memory signature = paid(PAYER_KEY, info);
        pastTheOperator(sender, abi.encodeCall(IAuthCaptureEscrow.authorize, (info, 1, COLLECTOR, signature)));
        pastTheOperator(
            sender,
            abi.encodeCall(AuthCaptureEscrowStandIn.charge, (info, USD, COLLECTOR, signature, 100, FEES))
        );
        authorize(info, signature);
        pastTheOperator(sender, abi.encodeWithSelector(0x644cd79a, info, USD, 100, FEES));
        pastTheOperator(sender, abi.encodeCall(IAuthCaptureEscrow.void, (info)));
        assertStatus(info, IEscrow.Status.Held);
        assertBalance(store(), USD);
    }

    function pastTheOperator(address sender, bytes memory data) private {
        vm.prank(sender);
        (bool ok, bytes memory reason) = address(COMMERCE).call(data);
        bytes4 kind = AuthCaptureEscrowStandIn.InvalidSender.selector;
        bytes32 wanted = keccak256(abi.encodeWithSelector(kind, sender, address(escrow)));
        vm.assertTrue(!ok && keccak256(reason) == wanted, "InvalidSender");
    }

    function test_aPaymentOfAnotherOperatorIsNoneOfOurs() public {
        IEscrow.PaymentInfo memory info = terms(payer, USD);
        info.operator = STRANGER;
        fund(payer, USD);
        bytes memory signature = paid(PAYER_KEY, info);
        vm.prank(STRANGER);
        COMMERCE.authorize(info, USD, COLLECTOR, signature);
        assertStatus(info, IEscrow.Status.None);
        vm.warp(block.timestamp + TIMEOUT);
        vm.expectRevert(
            abi.encodeWithSelector(
                IEscrow.WrongStatus.selector, idOf(info), IEscrow.Status.None, IEscrow.Status.Held
            )
        );
        escrow.refund(info, 0, "");
        bytes4 kind = AuthCaptureEscrowStandIn.InvalidSender.selector;
        vm.expectRevert(abi.encodeWithSelector(kind, address(escrow), STRANGER));
        vm.prank(arbiter);
        escrow.refund(info, RECORD, "");
        vm.expectRevert(abi.encodeWithSelector(kind, address(escrow), STRANGER));
        vm.prank(arbiter);
        escrow.release(info, RECORD, "");
        assertBalance(COMMERCE.getTokenStore(STRANGER), USD);
    }
}
