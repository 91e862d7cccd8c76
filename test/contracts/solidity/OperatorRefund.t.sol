// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {AuthCaptureEscrowStandIn} from "../../../contracts/dev/AuthCaptureEscrowStandIn.sol";
import {IEscrow} from "../../../contracts/interfaces/IEscrow.sol";
import {EscrowRefundTest} from "./EscrowRefund.t.sol";

/// @notice The escrow's tests of a refund, and what differs.
contract OperatorRefundTest is EscrowRefundTest {
    function custodian() internal pure override returns (Custodian) {
        return Custodian.Commerce;
    }

    function refusedAsUnknown(IEscrow.PaymentInfo memory info) private {
        vm.expectRevert(
            abi.encodeWithSelector(
                IEscrow.WrongStatus.selector, idOf(info), IEscrow.Status.None, IEscrow.Status.Held
            )
        );
        escrow.refund(info, RECORD, "");
    }

    function refusedAsOver(IEscrow.PaymentInfo memory info) private {
        bytes memory reason = notHeld(info, IEscrow.Status.Refunded, false);
        vm.expectRevert(reason);
        escrow.refund(info, 0, "");
        vm.expectRevert(reason);
        vm.prank(arbiter);
        escrow.refund(info, RECORD, "");
    }

    function testFuzz_noFieldCanBeChangedAfterwards(uint256 field, uint256 change) public override {
        IEscrow.PaymentInfo memory info = held(USD);
        IEscrow.PaymentInfo memory other = changed(info, field, change);
        fund(store(), 1000 * uint256(USD));
        vm.warp(block.timestamp + 1800);
        refusedAsUnknown(other);
        vm.prank(arbiter);
        (bool ok,) = address(escrow).call(abi.encodeCall(IEscrow.refund, (other, RECORD, "")));
        vm.assertTrue(!ok, "a changed field is refused");
        assertBalance(store(), 1001 * uint256(USD));
    }

    /// @dev The only way around the operator, and only for the payer.
    function test_fromAuthorizationExpiryOnThePayerTakesTheAmountBack() public {
        IEscrow.PaymentInfo memory info = held(USD);
        vm.warp(info.authorizationExpiry - 1);
        bytes4 kind = AuthCaptureEscrowStandIn.BeforeAuthorizationExpiry.selector;
        vm.expectRevert(abi.encodeWithSelector(kind, block.timestamp, info.authorizationExpiry));
        vm.prank(payer);
        COMMERCE.reclaim(info);
        vm.warp(info.authorizationExpiry);
        vm.expectRevert(abi.encodeWithSelector(AuthCaptureEscrowStandIn.InvalidSender.selector, STRANGER, payer));
        vm.prank(STRANGER);
        COMMERCE.reclaim(info);
        vm.prank(payer);
        COMMERCE.reclaim(info);
        assertBalance(payer, USD);
        assertStatus(info, IEscrow.Status.Refunded);
        refusedAsOver(info);
    }
}
