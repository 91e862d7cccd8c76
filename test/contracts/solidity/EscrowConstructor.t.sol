// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {IEscrow} from "../../../contracts/interfaces/IEscrow.sol";
import {EscrowFixture} from "./EscrowFixture.sol";
import {Vm} from "./Vm.sol";

contract EscrowConstructorTest is EscrowFixture {
    function testFuzz_theRolesAreFixedAndPublished(address usdc, address judge, address fees) public {
        vm.assume(usdc != address(0) && judge != address(0) && fees != address(0));
        vm.recordLogs();
        IEscrow instance = deploy(usdc, judge, fees);
        vm.assertEq(instance.USDC(), usdc, "USDC");
        vm.assertEq(instance.ARBITER(), judge, "ARBITER");
        vm.assertEq(instance.FEE_RECIPIENT(), fees, "FEE_RECIPIENT");
        Vm.Log[] memory logs = vm.getRecordedLogs();
        vm.assertEq(logs.length, 1, "one event");
        vm.assertEq(logs[0].topics[0], IEscrow.Opened.selector, "Opened");
        vm.assertEq(logs[0].topics[1], bytes32(uint256(uint160(usdc))), "usdc");
        vm.assertEq(logs[0].topics[2], bytes32(uint256(uint160(judge))), "arbiter");
        vm.assertEq(logs[0].topics[3], bytes32(uint256(uint160(fees))), "feeRecipient");
    }

    function deployFor(address usdc, address judge, address fees) external {
        deploy(usdc, judge, fees);
    }

    function test_zeroAddressesAreRefused() public {
        address[3][3] memory roles =
            [[address(0), arbiter, FEES], [address(USDC), address(0), FEES], [address(USDC), arbiter, address(0)]];
        for (uint256 i = 0; i < roles.length; i++) {
            vm.expectRevert(abi.encodeWithSelector(IEscrow.ZeroAddress.selector));
            this.deployFor(roles[i][0], roles[i][1], roles[i][2]);
        }
    }
}
