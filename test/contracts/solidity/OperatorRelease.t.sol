// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {IEscrow} from "../../../contracts/interfaces/IEscrow.sol";
import {EscrowReleaseTest} from "./EscrowRelease.t.sol";

/// @notice The escrow's tests of a release, and what differs.
contract OperatorReleaseTest is EscrowReleaseTest {
    function custodian() internal pure virtual override returns (Custodian) {
        return Custodian.Commerce;
    }

    /// @dev The escrow that holds the payments has none with different terms, or refuses the terms.
    function testFuzz_noFieldCanBeChangedAfterwards(uint256 field, uint256 change) public override {
        IEscrow.PaymentInfo memory info = held(USD);
        IEscrow.PaymentInfo memory other = changed(info, field, change);
        fund(store(), 1000 * uint256(USD));
        vm.prank(arbiter);
        (bool ok,) = address(escrow).call(abi.encodeCall(IEscrow.release, (other, RECORD, "")));
        vm.assertTrue(!ok, "a changed field is refused");
        assertStatus(info, IEscrow.Status.Held);
        assertBalance(store(), 1001 * uint256(USD));
    }

    /// @dev The operator keeps no debts, so the decision waits until USDC pays.
    function test_aReleaseThatUsdcRefusesCanBeRetried() public {
        IEscrow.PaymentInfo memory info = held(USD);
        bytes memory signature = verdict(info, true, RECORD);
        address[3] memory accounts = [MERCHANT, FEES, store()];
        for (uint256 i = 0; i < accounts.length; i++) {
            setBlacklisted(accounts[i], true);
            vm.expectRevert("Blacklistable: account is blacklisted");
            escrow.release(info, RECORD, signature);
            setBlacklisted(accounts[i], false);
        }
        setPaused(true);
        vm.expectRevert("Pausable: paused");
        escrow.release(info, RECORD, signature);
        setPaused(false);
        assertStatus(info, IEscrow.Status.Held);
        escrow.release(info, RECORD, signature);
        assertFees(USD / 100);
    }
}

/// @notice Version 1.1 of base/commerce-payments differs only in `capture`.
contract OperatorVersion11Test is OperatorReleaseTest {
    function custodian() internal pure override returns (Custodian) {
        return Custodian.Commerce11;
    }
}
