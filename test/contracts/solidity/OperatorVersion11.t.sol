// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {OperatorReleaseTest} from "./OperatorRelease.t.sol";

/// @notice Version 1.1 of base/commerce-payments differs only in `capture`.
contract OperatorVersion11Test is OperatorReleaseTest {
    function custodian() internal pure override returns (Custodian) {
        return Custodian.Commerce11;
    }
}
