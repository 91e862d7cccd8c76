// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {AuthCaptureEscrowStandIn} from "../../../contracts/dev/AuthCaptureEscrowStandIn.sol";
import {IAuthCaptureEscrow} from "../../../contracts/interfaces/IAuthCaptureEscrow.sol";
import {IEscrow} from "../../../contracts/interfaces/IEscrow.sol";
import {EscrowAuthorizeTest} from "./EscrowAuthorize.t.sol";

/// @notice The escrow's tests of a hold, and limits on the use of a payer's signature.
contract OperatorAuthorizeTest is EscrowAuthorizeTest {
    function custodian() internal pure override returns (Custodian) {
        return Custodian.Commerce;
    }

    function testFuzz_theHashesEqualCommercePayments(IEscrow.PaymentInfo memory info, uint64 chain)
        public
        override
    {
        vm.chainId(between(chain, 1, type(uint64).max));
        vm.assertEq(escrow.getHash(info), idOf(info), "id");
        vm.assertEq(COMMERCE.getHash(info), idOf(info), "the escrow's id");
        vm.assertEq(escrow.PAYMENT_INFO_TYPEHASH(), INFO_TYPEHASH, "typehash");
    }

    /// @dev The escrow obeys only the operator, and not the payer, the merchant or the arbiter.
    function testFuzz_noSenderBypassesTheOperator(address sender) public {
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

    function test_anotherOperatorsPaymentIsNotFound() public {
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
