// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {EscrowSignatureTest} from "./EscrowSignature.t.sol";

/// @notice The escrow's tests of the payer's signature.
contract OperatorSignatureTest is EscrowSignatureTest {
    function custodian() internal pure override returns (Custodian) {
        return Custodian.Commerce;
    }
}
