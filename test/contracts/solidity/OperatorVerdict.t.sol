// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {EscrowVerdictTest} from "./EscrowVerdict.t.sol";

/// @notice The escrow's tests of what the arbiter's signature commits to.
contract OperatorVerdictTest is EscrowVerdictTest {
    function custodian() internal pure override returns (Custodian) {
        return Custodian.Commerce;
    }
}
