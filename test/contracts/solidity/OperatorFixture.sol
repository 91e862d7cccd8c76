// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {EscrowFixture} from "./EscrowFixture.sol";

/// @notice The operator over version 1.0 of base/commerce-payments.
abstract contract OperatorFixture is EscrowFixture {
    function custodian() internal pure override returns (Custodian) {
        return Custodian.Commerce;
    }
}
