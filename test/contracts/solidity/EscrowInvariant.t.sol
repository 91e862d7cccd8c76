// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {EscrowHandler, OperatorHandler} from "./EscrowHandler.sol";

/// @notice Random sequences of calls to the escrow and around it. Every balance must be exact after every call.
contract EscrowInvariantTest {
    struct FuzzSelector {
        address addr;
        bytes4[] selectors;
    }

    EscrowHandler internal handler;

    function setUp() public virtual {
        handler = new EscrowHandler();
    }

    function targetContracts() public view returns (address[] memory targets) {
        targets = new address[](1);
        targets[0] = address(handler);
    }

    /// @dev Listing a function twice doubles its weight.
    function targetSelectors() public view returns (FuzzSelector[] memory targets) {
        bytes4[] memory selectors = new bytes4[](16);
        selectors[0] = selectors[1] = handler.hold.selector;
        selectors[2] = selectors[3] = handler.release.selector;
        selectors[4] = handler.refund.selector;
        selectors[5] = selectors[6] = handler.refundByAnybody.selector;
        selectors[7] = selectors[8] = handler.withdraw.selector;
        selectors[9] = handler.reclaim.selector;
        selectors[10] = handler.meddle.selector;
        selectors[11] = selectors[12] = handler.pass.selector;
        selectors[13] = handler.pause.selector;
        selectors[14] = handler.block_.selector;
        selectors[15] = handler.donate.selector;
        targets = new FuzzSelector[](1);
        targets[0] = FuzzSelector(address(handler), selectors);
    }

    function invariant_theBooksAreExactAndOnlyThePartiesArePaid() public view {
        handler.check();
    }
}

contract OperatorInvariantTest is EscrowInvariantTest {
    function setUp() public override {
        handler = new OperatorHandler();
    }
}
