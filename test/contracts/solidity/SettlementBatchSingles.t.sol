// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {SettlementBatchFixture} from "./SettlementBatchFixture.sol";

/// @notice A batch has the same effect as its calls one by one: the same balances and used authorizations.
contract SettlementBatchSinglesTest is SettlementBatchFixture {
    uint256 private constant PAYERS = 4;
    uint256 private constant MOST = 8;
    uint256 private random;

    function draw(uint256 count) private returns (uint256 drawn) {
        random = uint256(keccak256(abi.encode(random)));
        return random % count;
    }

    /// @dev Half of the items are valid. The others have every defect that USDC refuses, and some that it does not.
    function drawItem(Item memory before) private returns (Item memory item) {
        uint256 key = PAYER_KEY + draw(PAYERS);
        item = unsigned(key, uint64(draw(2 * USD)));
        uint256 defect = draw(20);
        if (defect == 0) item.validBefore = uint40(block.timestamp);
        if (defect == 1) item.validAfter = uint40(block.timestamp);
        if (defect == 2) item.value = type(uint64).max;
        sign(defect == 3 ? key + 1 : key, item);
        if (defect == 4) item.v = 55 - item.v;
        if (defect == 5) item.r = bytes32(draw(type(uint256).max));
        if (defect == 6) item.s = bytes32(draw(1 << 255));
        if (defect == 7) item.value++;
        if (defect == 8) item.nonce = bytes32(draw(type(uint256).max));
        if (defect == 9) settleAlone(item);
        if (defect == 10 && before.v != 0) item = before;
        if (defect == 11) item.from = address(0);
    }

    function books(Item[] memory items) private view returns (bytes32) {
        bytes memory all = abi.encode(USDC.balanceOf(PAYEE), USDC.balanceOf(address(BATCH)));
        for (uint256 i = 0; i < PAYERS; i++) {
            all = bytes.concat(all, abi.encode(USDC.balanceOf(vm.addr(PAYER_KEY + i))));
        }
        for (uint256 i = 0; i < items.length; i++) {
            all = bytes.concat(all, abi.encode(isUsed(items[i])));
        }
        return keccak256(all);
    }

    function testFuzz_aBatchIsItsSingleCalls(uint256 seed) public {
        random = seed;
        for (uint256 i = 0; i < PAYERS; i++) {
            fund(vm.addr(PAYER_KEY + i), draw(4 * USD));
        }
        Item[] memory items = new Item[](1 + draw(MOST));
        for (uint256 i = 0; i < items.length; i++) {
            items[i] = drawItem(items[i == 0 ? 0 : i - 1]);
        }
        address changed = vm.addr(PAYER_KEY + draw(PAYERS));
        if (draw(4) == 0) setBlacklisted(changed, true);
        if (draw(32) == 0) setBlacklisted(PAYEE, true);
        if (draw(32) == 0) setPaused(true);
        bool withCode = draw(4) == 0;
        if (withCode) vm.etch(changed, hex"00");

        uint256 start = vm.snapshotState();
        (uint256 wantedFailed, uint256 wantedSkipped) = (0, 0);
        for (uint256 i = 0; i < items.length; i++) {
            if (withCode && items[i].from == changed) wantedSkipped |= 1 << i;
            else if (!settleAlone(items[i])) wantedFailed |= 1 << i;
        }
        bytes32 wanted = books(items);
        vm.revertToState(start);

        (uint256 failed, uint256 skipped) = settle(items);
        assertMasks(failed, wantedFailed | wantedSkipped, skipped, wantedSkipped);
        vm.assertEq(books(items), wanted, "balances and authorizations");
    }
}
