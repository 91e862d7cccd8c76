// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {ISettlementBatch} from "../../../contracts/interfaces/ISettlementBatch.sol";
import {SettlementBatchFixture} from "./SettlementBatchFixture.sol";

/// @notice The sender's gas limit must not decide which payments fail.
contract SettlementBatchGasTest is SettlementBatchFixture {
    address private constant TOKEN = 0x00000000000000000000000000000000707e4000;
    /// @dev INVALID, which uses up all gas that it gets.
    bytes private constant BURNER = hex"fe";

    function call(address token, uint256 cap, bytes memory items, uint256 gas)
        private
        returns (bool ok, bytes memory answer)
    {
        return address(BATCH).call{gas: gas}(abi.encodeCall(ISettlementBatch.settle, (token, PAYEE, cap, items)));
    }

    function test_starvedNamesThePaymentThatWouldHaveBeenCutShort() public {
        bytes memory items = packed(payments(5));
        vm.etch(TOKEN, BURNER);
        for (uint256 index = 0; index < 5; index++) {
            (bool ok, bytes memory answer) = call(TOKEN, GAS_CAP, items, index * (GAS_CAP + 5_000) + GAS_CAP);
            vm.assertTrue(!ok, "reverts");
            bytes memory starved = abi.encodeWithSelector(ISettlementBatch.Starved.selector, index);
            vm.assertEq(keccak256(answer), keccak256(starved), "the reason");
        }
        (bool enough, bytes memory masks) = call(TOKEN, GAS_CAP, items, 5 * (GAS_CAP + 5_000) + 5_000);
        vm.assertTrue(enough, "enough for all");
        vm.assertEq(keccak256(masks), keccak256(abi.encode(31, 0)), "all burned their cap");
    }

    function testFuzz_noGasLimitSettlesAPartOfABatch(uint256 gas) public {
        Item[] memory items = payments(3);
        uint256 cap = 70_000;
        gas = between(gas, 20_000, 3 * cap + 60_000);
        (bool ok, bytes memory answer) = call(address(USDC), cap, packed(items), gas);
        if (ok) vm.assertEq(keccak256(answer), keccak256(abi.encode(0, 0)), "masks");
        assertUnsettled(items, ok ? 0 : 7);
    }
}
