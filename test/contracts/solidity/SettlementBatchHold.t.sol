// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {IEscrow} from "../../../contracts/interfaces/IEscrow.sol";
import {ISettlementBatch} from "../../../contracts/interfaces/ISettlementBatch.sol";
import {EscrowFixture} from "./EscrowFixture.sol";
import {Vm} from "./Vm.sol";

/// @notice Uses up all the gas that it gets.
contract Burner {
    fallback() external {
        while (true) {}
    }
}

/// @notice Holds that share a transaction, with the production bytecode of both contracts.
contract SettlementBatchHoldTest is EscrowFixture {
    ISettlementBatch private constant BATCH = ISettlementBatch(0x0000000000000000000000000000000000Ba7C4E);
    address private constant IMPLEMENTATION = 0x00000000000000000000000000000000BAD00001;
    uint256 private constant GAS_CAP = 200_000;
    /// @dev The gas limit of a skipped payer, and of the work around a call.
    uint256 private constant SMALL = 7_000;

    IEscrow.PaymentInfo[] private infos;

    function setUp() public override {
        super.setUp();
        string memory artifact = "artifacts/contracts/SettlementBatch.sol/SettlementBatch.json";
        vm.etch(address(BATCH), vm.parseBytes(fieldOf(artifact, ".deployedBytecode")));
    }

    /// @dev Signed holds of one dollar each, from different accounts.
    function signedHolds(uint256 count) private returns (bytes[] memory calls) {
        calls = new bytes[](count);
        delete infos;
        for (uint256 i = 0; i < count; i++) {
            address from = vm.addr(PAYER_KEY + i);
            fund(from, USD);
            infos.push(terms(from, USD));
            calls[i] = callOf(infos[i], paid(PAYER_KEY + i, infos[i]));
        }
    }

    function callOf(IEscrow.PaymentInfo memory info, bytes memory signature) private view returns (bytes memory) {
        return abi.encodeCall(IEscrow.authorize, (info, info.maxAmount, payee(), signature));
    }

    function hold(bytes[] memory calls) private returns (uint256 failed, uint256 skipped) {
        return BATCH.hold(address(escrow), GAS_CAP, calls);
    }

    /// @dev Asserts that all payments except those in the mask are held, and that the batch keeps nothing.
    function assertUnheld(uint256 mask) private view {
        uint256 sum = 0;
        for (uint256 i = 0; i < infos.length; i++) {
            bool isLeft = mask >> i & 1 == 1;
            assertStatus(infos[i], isLeft ? IEscrow.Status.None : IEscrow.Status.Held);
            if (!isLeft) sum += infos[i].maxAmount;
        }
        assertBalance(store(), sum);
        assertBalance(address(BATCH), 0);
    }

    function burnAt(address account) private {
        vm.etch(IMPLEMENTATION, type(Burner).runtimeCode);
        vm.etch(account, abi.encodePacked(hex"ef0100", IMPLEMENTATION));
    }

    function testFuzz_everyHoldIsMadeForAnySender(address sender, uint256 count) public {
        count = between(count, 1, 8);
        bytes[] memory calls = signedHolds(count);
        vm.recordLogs();
        vm.prank(sender);
        (uint256 failed, uint256 skipped) = hold(calls);
        vm.assertEq(failed, 0, "failed");
        vm.assertEq(skipped, 0, "skipped");
        assertUnheld(0);
        Vm.Log[] memory logs = vm.getRecordedLogs();
        for (uint256 i = 0; i < logs.length; i++) {
            vm.assertTrue(logs[i].emitter != address(BATCH), "no event of the batch");
        }
    }

    function testFuzz_theMasksShowWhatFailedAndWhy(uint256 broken, uint256 withCode) public {
        bytes[] memory calls = signedHolds(8);
        (broken, withCode) = (broken & 0xff, withCode & 0xff);
        for (uint256 i = 0; i < 8; i++) {
            if (broken >> i & 1 == 1) {
                vm.prank(infos[i].payer);
                USDC.transfer(MERCHANT, 1);
            }
            if (withCode >> i & 1 == 1) burnAt(infos[i].payer);
        }
        if (broken | withCode != 0) {
            vm.expectEmit(true, true, true, true, address(BATCH));
            emit ISettlementBatch.Unsettled(broken | withCode, withCode);
        }
        (uint256 failed, uint256 skipped) = hold(calls);
        vm.assertEq(failed, broken | withCode, "failed");
        vm.assertEq(skipped, withCode, "skipped");
        assertUnheld(broken | withCode);
    }

    function test_aHoldIsMadeOnce() public {
        bytes[] memory calls = signedHolds(3);
        calls[2] = calls[0];
        (uint256 failed,) = hold(calls);
        vm.assertEq(failed, 4, "the second time");
        (failed,) = hold(calls);
        vm.assertEq(failed, 7, "again");
    }

    function test_manyPayersWithCodeCostLittle() public {
        bytes[] memory calls = signedHolds(20);
        uint256 wanted = 0;
        for (uint256 i = 0; i < 19; i++) {
            burnAt(infos[i].payer);
            wanted |= 1 << i;
        }
        uint256 used = gasleft();
        hold(calls);
        used -= gasleft();
        vm.assertTrue(used < 19 * SMALL + GAS_CAP, "19 skipped, one held");
        assertUnheld(wanted);
    }

    function test_aCallUsesNoMoreThanTheCap() public {
        bytes[] memory calls = signedHolds(3);
        vm.etch(address(escrow), type(Burner).runtimeCode);
        uint256 used = gasleft();
        (uint256 failed, uint256 skipped) = hold(calls);
        used -= gasleft();
        vm.assertEq(failed, 7, "failed");
        vm.assertEq(skipped, 0, "skipped");
        vm.assertTrue(used > 3 * GAS_CAP && used < 3 * (GAS_CAP + SMALL), "three caps");
    }

    function testFuzz_noGasLimitMakesAPartOfTheHolds(uint256 gas) public {
        bytes[] memory calls = signedHolds(3);
        gas = between(gas, 20_000, 3 * GAS_CAP + 60_000);
        (bool ok, bytes memory answer) =
            address(BATCH).call{gas: gas}(abi.encodeCall(ISettlementBatch.hold, (address(escrow), GAS_CAP, calls)));
        if (ok) vm.assertEq(keccak256(answer), keccak256(abi.encode(0, 0)), "masks");
        assertUnheld(ok ? 0 : 7);
    }

    function test_starvedNamesTheHold() public {
        bytes[] memory calls = signedHolds(3);
        vm.etch(address(escrow), type(Burner).runtimeCode);
        bytes memory data = abi.encodeCall(ISettlementBatch.hold, (address(escrow), GAS_CAP, calls));
        for (uint256 index = 0; index < 3; index++) {
            (bool ok, bytes memory answer) =
                address(BATCH).call{gas: index * (GAS_CAP + SMALL) + GAS_CAP}(data);
            vm.assertTrue(!ok, "reverts");
            bytes memory starved = abi.encodeWithSelector(ISettlementBatch.Starved.selector, index);
            vm.assertEq(keccak256(answer), keccak256(starved), "the reason");
        }
    }

    function test_aCapBeyondAnyGasLimitIsRefused() public {
        bytes[] memory calls = signedHolds(1);
        vm.expectRevert(abi.encodeWithSignature("Panic(uint256)", 0x11));
        BATCH.hold(address(escrow), type(uint256).max, calls);
        vm.expectRevert(abi.encodeWithSelector(ISettlementBatch.Starved.selector, 0));
        BATCH.hold(address(escrow), type(uint256).max / 64, calls);
    }

    /// @dev Any other function could be called without a signature.
    function testFuzz_onlyAuthorizeIsCalled(bytes4 selector) public {
        vm.assume(selector != IEscrow.authorize.selector);
        bytes[] memory calls = signedHolds(2);
        for (uint256 i = 0; i < 4; i++) {
            calls[1][i] = selector[i];
        }
        vm.expectRevert(abi.encodeWithSelector(ISettlementBatch.Malformed.selector));
        hold(calls);
        assertUnheld(3);
    }

    function test_aCallWithoutAPayerIsMalformed() public {
        bytes[] memory calls = signedHolds(1);
        bytes memory whole = calls[0];
        for (uint256 length = 0; length < 68; length += 4) {
            bytes memory cut = new bytes(length);
            for (uint256 i = 0; i < length; i++) {
                cut[i] = whole[i];
            }
            calls[0] = cut;
            vm.expectRevert(abi.encodeWithSelector(ISettlementBatch.Malformed.selector));
            hold(calls);
        }
    }

    /// @dev A payer with dirty bits is refused by the escrow, even if the batch has looked at the clean address.
    function test_aPayerWithDirtyBitsIsRefused() public {
        bytes[] memory calls = signedHolds(2);
        calls[0][36] = 0x01;
        (uint256 failed, uint256 skipped) = hold(calls);
        vm.assertEq(failed, 1, "failed");
        vm.assertEq(skipped, 0, "skipped");
        assertUnheld(1);
    }

    function test_256HoldsAndNoMore() public {
        bytes[] memory calls = new bytes[](256);
        bytes memory one = signedHolds(1)[0];
        for (uint256 i = 0; i < 256; i++) {
            calls[i] = one;
        }
        (uint256 failed,) = hold(calls);
        vm.assertEq(failed, type(uint256).max - 1, "all but the first");
        bytes[] memory more = new bytes[](257);
        for (uint256 i = 0; i < 257; i++) {
            more[i] = one;
        }
        vm.expectRevert(abi.encodeWithSelector(ISettlementBatch.Malformed.selector));
        hold(more);
        vm.recordLogs();
        hold(new bytes[](0));
        vm.assertEq(vm.getRecordedLogs().length, 0, "no events without holds");
    }
}

/// @notice The same tests over base/commerce-payments.
contract SettlementBatchOperatorHoldTest is SettlementBatchHoldTest {
    function custodian() internal pure override returns (Custodian) {
        return Custodian.Commerce;
    }
}
