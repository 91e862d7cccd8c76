// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {EscrowVerdictTest} from "./EscrowVerdict.t.sol";

/// @notice The escrow's tests of the arbiter's signature.
contract OperatorVerdictTest is EscrowVerdictTest {
    function custodian() internal pure override returns (Custodian) {
        return Custodian.Commerce;
    }
}
