// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {EscrowHandler} from "./EscrowHandler.sol";
import {RandomLives} from "./RandomLives.sol";

/// @notice Random sequences of escrow calls. The books must balance after every call.
contract EscrowInvariantTest is RandomLives {
    EscrowHandler private handler;

    function setUp() public {
        handler = new EscrowHandler();
    }

    function handled() internal view override returns (address, bytes4[] memory selectors) {
        selectors = new bytes4[](14);
        selectors[0] = selectors[1] = handler.hold.selector;
        selectors[2] = handler.release.selector;
        selectors[3] = handler.refund.selector;
        selectors[4] = selectors[5] = handler.refundByAnybody.selector;
        selectors[6] = selectors[7] = handler.withdraw.selector;
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

    /// @dev Columns: holds, releases, refunds, timeouts, withdrawals, credits, refusals.
    function afterInvariant() public {
        (uint256 a, uint256 b, uint256 c, uint256 d, uint256 e, uint256 f, uint256 g) = handler.moves();
        writeMoves("cache/escrow-moves.txt", [a, b, c, d, e, f, g]);
    }
}
