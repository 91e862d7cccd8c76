// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {AuthCaptureEscrowStandIn} from "../../../contracts/dev/AuthCaptureEscrowStandIn.sol";
import {Eip3009CollectorStandIn} from "../../../contracts/dev/Eip3009CollectorStandIn.sol";
import {IEscrow} from "../../../contracts/interfaces/IEscrow.sol";
import {LikelyPromises} from "./LikelyPromises.sol";

/// @notice Uses our stand-in of base/commerce-payments. Proofs of the real contract's promises are not part of this
/// project.
contract OperatorPromisesTest is LikelyPromises {
    address private constant MULTICALL3 = 0xcA11bde05977b3631167028862bE2a173976CA11;

    function install() internal override {
        custody = address(new AuthCaptureEscrowStandIn());
        payee = address(new Eip3009CollectorStandIn(custody, MULTICALL3));
        escrow = IEscrow(create("ArbiterOperator", abi.encode(custody, payee, usdc, ARBITER, FEES, false)));
    }

    function owes() internal pure override returns (bool) {
        return false;
    }

    function feeOf(uint256 amount) internal pure override returns (uint256) {
        return amount * 100 / 10_000;
    }
}
