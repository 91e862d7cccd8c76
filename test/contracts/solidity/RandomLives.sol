// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {Vm} from "./Vm.sol";

/// @notice The callbacks of the fuzzer of random sequences, and the record of their moves.
abstract contract RandomLives {
    struct FuzzSelector {
        address addr;
        bytes4[] selectors;
    }

    Vm private constant vm = Vm(0x7109709ECfa91a80626fF3989D68f67F5b1DD12D);

    /// @dev The contract that the fuzzer calls, and its functions. Listing one twice doubles its weight.
    function handled() internal view virtual returns (address handler, bytes4[] memory selectors);

    function targetContracts() public view returns (address[] memory targets) {
        targets = new address[](1);
        (targets[0],) = handled();
    }

    function targetSelectors() public view returns (FuzzSelector[] memory targets) {
        targets = new FuzzSelector[](1);
        (targets[0].addr, targets[0].selectors) = handled();
    }

    /// @dev Writes one line per run with the number of times that each move took effect.
    function writeMoves(string memory path, uint256[7] memory counts) internal {
        string memory line = vm.toString(counts[0]);
        for (uint256 i = 1; i < counts.length; i++) {
            line = string.concat(line, " ", vm.toString(counts[i]));
        }
        vm.writeLine(path, line);
    }
}
