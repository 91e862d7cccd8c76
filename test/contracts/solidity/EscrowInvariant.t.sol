// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {EscrowHandler} from "./EscrowHandler.sol";
import {UsdcFixture} from "./UsdcFixture.sol";

/// @notice Random sequences of escrow calls. The books must balance after every call; each run's moves are logged to a
/// file.
contract EscrowInvariantTest is UsdcFixture {
    struct FuzzSelector {
        address addr;
        bytes4[] selectors;
    }

    EscrowHandler private handler;

    function setUp() public {
        handler = new EscrowHandler();
    }

    /// @dev The contract that the fuzzer calls.
    function targetContracts() public view returns (address[] memory targets) {
        targets = new address[](1);
        targets[0] = address(handler);
    }

    /// @dev The functions that the fuzzer calls; listing one twice doubles its weight.
    function targetSelectors() public view returns (FuzzSelector[] memory targets) {
        bytes4[14] memory moves = [
            handler.hold.selector,
            handler.hold.selector,
            handler.release.selector,
            handler.refund.selector,
            handler.refundByAnybody.selector,
            handler.refundByAnybody.selector,
            handler.withdraw.selector,
            handler.withdraw.selector,
            handler.meddle.selector,
            handler.pass.selector,
            handler.pass.selector,
            handler.pause.selector,
            handler.block_.selector,
            handler.donate.selector
        ];
        targets = new FuzzSelector[](1);
        targets[0].addr = address(handler);
        targets[0].selectors = new bytes4[](moves.length);
        for (uint256 i = 0; i < moves.length; i++) {
            targets[0].selectors[i] = moves[i];
        }
    }

    function invariant_theBooksAreExactAndOnlyThePartiesArePaid() public view {
        handler.check();
    }

    /// @dev Writes one line per run: holds, releases, refunds, timeouts, withdrawals, credits, refusals.
    function afterInvariant() public {
        (uint256 a, uint256 b, uint256 c, uint256 d, uint256 e, uint256 f, uint256 g) = handler.moves();
        uint256[7] memory counts = [a, b, c, d, e, f, g];
        string memory line = vm.toString(counts[0]);
        for (uint256 i = 1; i < counts.length; i++) {
            line = string.concat(line, " ", vm.toString(counts[i]));
        }
        vm.writeLine("cache/escrow-moves.txt", line);
    }
}
