// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {EscrowTermsTest} from "./EscrowTerms.t.sol";

/// @notice The escrow's tests of rejected terms. The last two checks belong to the escrow that would hold the payment.
contract OperatorTermsTest is EscrowTermsTest {
    function custodian() internal pure override returns (Custodian) {
        return Custodian.Commerce;
    }
}
