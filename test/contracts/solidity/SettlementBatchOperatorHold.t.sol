// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {SettlementBatchHoldTest} from "./SettlementBatchHold.t.sol";

/// @notice The same tests over base/commerce-payments.
contract SettlementBatchOperatorHoldTest is SettlementBatchHoldTest {
    function custodian() internal pure override returns (Custodian) {
        return Custodian.Commerce;
    }
}
