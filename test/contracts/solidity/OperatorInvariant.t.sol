// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {OperatorHandler} from "./OperatorHandler.sol";
import {RandomLives} from "./RandomLives.sol";

/// @notice Random sequences of calls to the operator and around it. Every balance must be exact after every call.
contract OperatorInvariantTest is RandomLives {
    OperatorHandler private handler;

    function setUp() public {
        handler = new OperatorHandler();
    }

    function handled() internal view override returns (address, bytes4[] memory selectors) {
        selectors = new bytes4[](14);
        selectors[0] = selectors[1] = handler.hold.selector;
        selectors[2] = selectors[3] = handler.release.selector;
        selectors[4] = handler.refund.selector;
        selectors[5] = selectors[6] = handler.refundByAnybody.selector;
        selectors[7] = handler.reclaim.selector;
        selectors[8] = handler.meddle.selector;
        selectors[9] = selectors[10] = handler.pass.selector;
        selectors[11] = handler.pause.selector;
        selectors[12] = handler.block_.selector;
        selectors[13] = handler.donate.selector;
        return (address(handler), selectors);
    }

    function invariant_theBooksAreExactAndOnlyThePartiesArePaid() public view {
        handler.check();
    }

    /// @dev Columns: holds, releases, refunds, timeouts, reclaims, retries, refusals.
    function afterInvariant() public {
        (uint256 a, uint256 b, uint256 c, uint256 d, uint256 e, uint256 f, uint256 g) = handler.moves();
        writeMoves("cache/operator-moves.txt", [a, b, c, d, e, f, g]);
    }
}
