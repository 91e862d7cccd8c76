// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {IArbiterOperator} from "../../../contracts/interfaces/IArbiterOperator.sol";
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

contract OperatorConstructorTest is EscrowFixture {
    function custodian() internal pure override returns (Custodian) {
        return Custodian.Commerce;
    }

    function testFuzz_theRolesAreFixedAndPublished(address[5] memory roles, bool feeIsAmount) public {
        for (uint256 i = 0; i < roles.length; i++) {
            vm.assume(roles[i] != address(0));
        }
        vm.recordLogs();
        IArbiterOperator instance = IArbiterOperator(deployOperator(roles, feeIsAmount));
        vm.assertEq(instance.ESCROW(), roles[0], "ESCROW");
        vm.assertEq(instance.COLLECTOR(), roles[1], "COLLECTOR");
        vm.assertEq(instance.USDC(), roles[2], "USDC");
        vm.assertEq(instance.ARBITER(), roles[3], "ARBITER");
        vm.assertEq(instance.FEE_RECIPIENT(), roles[4], "FEE_RECIPIENT");
        vm.assertTrue(instance.FEE_IS_AMOUNT() == feeIsAmount, "FEE_IS_AMOUNT");
        Vm.Log[] memory logs = vm.getRecordedLogs();
        vm.assertEq(logs.length, 1, "one event");
        vm.assertEq(logs[0].topics[0], IEscrow.Opened.selector, "Opened");
        vm.assertEq(logs[0].topics[1], bytes32(uint256(uint160(roles[2]))), "usdc");
        vm.assertEq(logs[0].topics[2], bytes32(uint256(uint160(roles[3]))), "arbiter");
        vm.assertEq(logs[0].topics[3], bytes32(uint256(uint160(roles[4]))), "feeRecipient");
    }

    function deployFor(address[5] memory roles) external {
        deployOperator(roles, false);
    }

    function test_zeroAddressesAreRefused() public {
        for (uint256 i = 0; i < 5; i++) {
            address[5] memory roles = [custody(), payee(), address(USDC), arbiter, FEES];
            roles[i] = address(0);
            vm.expectRevert(abi.encodeWithSelector(IEscrow.ZeroAddress.selector));
            this.deployFor(roles);
        }
    }
}
