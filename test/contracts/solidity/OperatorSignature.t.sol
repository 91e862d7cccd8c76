// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {EscrowSignatureTest} from "./EscrowSignature.t.sol";

/// @notice The escrow's tests of what the payer's signature commits to.
contract OperatorSignatureTest is EscrowSignatureTest {
    function custodian() internal pure override returns (Custodian) {
        return Custodian.Commerce;
    }
}
