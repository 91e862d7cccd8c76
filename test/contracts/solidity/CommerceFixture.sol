// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {AuthCaptureEscrowStandIn, AuthCaptureEscrowStandIn11} from "../../../contracts/dev/AuthCaptureEscrowStandIn.sol";
import {Eip3009CollectorStandIn} from "../../../contracts/dev/Eip3009CollectorStandIn.sol";
import {IAuthCaptureEscrow} from "../../../contracts/interfaces/IAuthCaptureEscrow.sol";
import {UsdcFixture} from "./UsdcFixture.sol";

/// @notice base/commerce-payments at its canonical addresses: our stand-in, or the real code if the environment
/// variable CANONICAL_CODE names a JSON file with it.
abstract contract CommerceFixture is UsdcFixture {
    IAuthCaptureEscrow internal constant COMMERCE = IAuthCaptureEscrow(0xBdEA0D1bcC5966192B070Fdf62aB4EF5b4420cff);
    address internal constant COLLECTOR = 0x0E3dF9510de65469C4518D7843919c0b8C7A7757;
    /// @dev Version 1.1.
    IAuthCaptureEscrow internal constant COMMERCE_11 = IAuthCaptureEscrow(0xf96815976523E00e65Be8f34cA5e64b4f41EB19c);
    address internal constant COLLECTOR_11 = 0x8612dfdc421f80336cd14E8EF9cb1E765dB5ab88;
    address private constant MULTICALL3 = 0xcA11bde05977b3631167028862bE2a173976CA11;

    function installCommerce() internal {
        vm.etch(address(COMMERCE), address(new AuthCaptureEscrowStandIn()).code);
        vm.etch(COLLECTOR, address(new Eip3009CollectorStandIn(address(COMMERCE), MULTICALL3)).code);
        vm.etch(address(COMMERCE_11), address(new AuthCaptureEscrowStandIn11()).code);
        vm.etch(COLLECTOR_11, address(new Eip3009CollectorStandIn(address(COMMERCE_11), MULTICALL3)).code);
        string memory path = vm.envOr("CANONICAL_CODE", "");
        if (bytes(path).length > 0) installCode(vm.readFile(path));
    }

    /// @dev The JSON maps addresses to runtime code. It must have both contracts of version 1.0, because otherwise our
    /// stand-in would be tested.
    function installCode(string memory json) private {
        string[] memory addresses = vm.parseJsonKeys(json, "$");
        vm.etch(address(COMMERCE), "");
        vm.etch(COLLECTOR, "");
        for (uint256 i = 0; i < addresses.length; i++) {
            string memory code = vm.parseJsonString(json, string.concat(".", addresses[i]));
            vm.etch(vm.parseAddress(addresses[i]), vm.parseBytes(code));
        }
        vm.assertTrue(address(COMMERCE).code.length > 0 && COLLECTOR.code.length > 0, "CANONICAL_CODE lacks code");
    }
}
