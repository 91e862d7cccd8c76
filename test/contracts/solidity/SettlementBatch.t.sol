// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {ISettlementBatch} from "../../../contracts/interfaces/ISettlementBatch.sol";
import {SettlementBatchFixture} from "./SettlementBatchFixture.sol";

/// @notice Parsing of items, and the meaning of the masks.
contract SettlementBatchTest is SettlementBatchFixture {
    uint256 private constant ITEM_LENGTH = 134;

    /// @dev The payer signs every field, so USDC accepts no other.
    function testFuzz_everyFieldOfAnItemReachesUsdc(uint256 key, Item memory item, address sender) public {
        key = between(key, 1, type(uint128).max);
        item.from = vm.addr(key);
        item.value = uint64(between(item.value, 1, type(uint64).max));
        item.validAfter = uint40(between(item.validAfter, 0, type(uint40).max - 2));
        item.validBefore = uint40(between(item.validBefore, item.validAfter + 2, type(uint40).max));
        vm.warp(between(uint256(item.nonce), item.validAfter + 1, item.validBefore - 1));
        fund(item.from, item.value);
        sign(key, item);
        vm.recordLogs();
        vm.prank(sender);
        (uint256 failed, uint256 skipped) = BATCH.settle(address(USDC), PAYEE, GAS_CAP, packed(item));
        assertMasks(failed, 0, skipped, 0);
        vm.assertEq(eventsOfBatch(), 0, "no event of the batch");
        vm.assertTrue(isUsed(item), "used");
        vm.assertEq(USDC.balanceOf(PAYEE), item.value, "the payee's USDC");
        vm.assertEq(USDC.balanceOf(item.from), 0, "the payer's USDC");
    }

    /// @dev Neighboring fields of one word: each is all ones next to the least values of the others.
    function test_theGreatestValueAndTimes() public {
        uint40 end = type(uint40).max;
        Item[] memory items = new Item[](2);
        items[0] = unsigned(PAYER_KEY, type(uint64).max);
        (items[0].validAfter, items[0].validBefore) = (0, end);
        items[1] = unsigned(PAYER_KEY, 0);
        (items[1].validAfter, items[1].validBefore) = (end - 2, end);
        fund(items[0].from, type(uint64).max);
        for (uint256 i = 0; i < items.length; i++) {
            sign(PAYER_KEY, items[i]);
        }
        vm.warp(end - 1);
        (uint256 failed, uint256 skipped) = settle(items);
        assertMasks(failed, 0, skipped, 0);
        assertUnsettled(items, 0);
    }

    function test_bothParities() public {
        Item[] memory items = payments(8);
        uint256 odd = 0;
        for (uint256 i = 0; i < items.length; i++) {
            if (items[i].v == 28) odd++;
        }
        vm.assertTrue(odd > 0 && odd < items.length, "signatures of both parities");
        (uint256 failed,) = settle(items);
        vm.assertEq(failed, 0, "failed");
        assertUnsettled(items, 0);
    }

    function test_theOtherParityIsAnotherSignature() public {
        Item[] memory items = payments(2);
        items[0].v = 55 - items[0].v;
        (uint256 failed, uint256 skipped) = settle(items);
        assertMasks(failed, 1, skipped, 0);
        assertUnsettled(items, 1);
    }

    /// @dev The highest bit of s is not part of it, so the upper half of the order cannot be written.
    function test_aMalleatedSignatureFails() public {
        Item[] memory items = payments(2);
        bytes memory signature = highS(abi.encodePacked(items[1].r, items[1].s, items[1].v));
        (bytes32 r, uint256 s, uint8 v) = split(signature);
        (items[1].r, items[1].s, items[1].v) = (r, bytes32(s), v);
        (uint256 failed, uint256 skipped) = settle(items);
        assertMasks(failed, 2, skipped, 0);
        assertUnsettled(items, 2);
    }

    function testFuzz_aPartOfAnItemIsMalformed(uint256 length) public {
        length = between(length, 1, 5 * ITEM_LENGTH);
        vm.assume(length % ITEM_LENGTH != 0);
        vm.expectRevert(abi.encodeWithSelector(ISettlementBatch.Malformed.selector));
        BATCH.settle(address(USDC), PAYEE, GAS_CAP, new bytes(length));
    }

    function test_257ItemsAreMalformed() public {
        vm.expectRevert(abi.encodeWithSelector(ISettlementBatch.Malformed.selector));
        BATCH.settle(address(USDC), PAYEE, GAS_CAP, new bytes(257 * ITEM_LENGTH));
    }

    function test_noItemsSettleNothing() public {
        vm.recordLogs();
        (uint256 failed, uint256 skipped) = BATCH.settle(address(USDC), PAYEE, GAS_CAP, "");
        assertMasks(failed, 0, skipped, 0);
        vm.assertEq(vm.getRecordedLogs().length, 0, "events");
    }

    /// @dev A cap whose 64/63 does not fit in a word must not wrap to a small one.
    function test_aCapBeyondAnyGasLimitIsRefused() public {
        bytes memory items = packed(payments(1));
        vm.expectRevert(abi.encodeWithSignature("Panic(uint256)", 0x11));
        BATCH.settle(address(USDC), PAYEE, type(uint256).max, items);
        vm.expectRevert(abi.encodeWithSelector(ISettlementBatch.Starved.selector, 0));
        BATCH.settle(address(USDC), PAYEE, type(uint256).max / 64, items);
    }

    function test_256ItemsHaveABitEach() public {
        Item[] memory items = payments(256);
        uint256 wanted = 1 | 1 << 1 | 1 << 127 | 1 << 128 | 1 << 254 | 1 << 255;
        for (uint256 i = 0; i < items.length; i++) {
            if (wanted >> i & 1 == 1) items[i].value++;
        }
        vm.expectEmit(true, true, true, true, address(BATCH));
        emit ISettlementBatch.Unsettled(wanted, 0);
        (uint256 failed, uint256 skipped) = settle(items);
        assertMasks(failed, wanted, skipped, 0);
        assertUnsettled(items, wanted);
        vm.recordLogs();
        (failed, skipped) = settle(items);
        assertMasks(failed, type(uint256).max, skipped, 0);
        vm.assertEq(eventsOfBatch(), 1, "one event");
    }

    function testFuzz_theMasksShowWhatFailedAndWhy(uint256 broken, uint256 withCode) public {
        Item[] memory items = payments(8);
        (broken, withCode) = (broken & 0xff, withCode & 0xff);
        for (uint256 i = 0; i < items.length; i++) {
            if (broken >> i & 1 == 1) items[i].value++;
            if (withCode >> i & 1 == 1) vm.etch(items[i].from, hex"00");
        }
        if (broken | withCode != 0) {
            vm.expectEmit(true, true, true, true, address(BATCH));
            emit ISettlementBatch.Unsettled(broken | withCode, withCode);
        }
        (uint256 failed, uint256 skipped) = settle(items);
        assertMasks(failed, broken | withCode, skipped, withCode);
        assertUnsettled(items, broken | withCode);
    }

    function test_anAuthorizationSettlesOnce() public {
        Item[] memory items = payments(3);
        items[2] = items[0];
        fund(items[0].from, USD);
        (uint256 failed,) = settle(items);
        vm.assertEq(failed, 4, "the second time");
        vm.assertEq(USDC.balanceOf(PAYEE), 2 * USD, "the payee's USDC");
        (failed,) = settle(items);
        vm.assertEq(failed, 7, "again");
        vm.assertEq(USDC.balanceOf(PAYEE), 2 * USD, "the payee's USDC");
    }

    function test_oneFailureLeavesItsNeighborsSettled() public {
        Item[] memory items = payments(6);
        settleAlone(items[0]);
        setBlacklisted(items[1].from, true);
        vm.prank(items[3].from);
        USDC.transfer(PAYEE, USD);
        items[4].validBefore = uint40(block.timestamp);
        sign(PAYER_KEY + 4, items[4]);
        (uint256 failed, uint256 skipped) = settle(items);
        assertMasks(failed, 1 | 2 | 8 | 16, skipped, 0);
        vm.assertTrue(isUsed(items[2]) && isUsed(items[5]), "the neighbors");
        vm.assertEq(USDC.balanceOf(PAYEE), 4 * USD, "two settled, one alone, one transferred");
    }

    function test_everythingFailsAtAPausedToken() public {
        Item[] memory items = payments(3);
        setPaused(true);
        (uint256 failed, uint256 skipped) = settle(items);
        assertMasks(failed, 7, skipped, 0);
        assertUnsettled(items, 7);
    }

    function test_anAddressWithDirtyBitsIsRefused() public {
        bytes memory data =
            abi.encodeCall(ISettlementBatch.settle, (address(USDC), PAYEE, GAS_CAP, packed(payments(1))));
        for (uint256 word = 0; word < 2; word++) {
            data[4 + 32 * word] = 0x01;
            (bool ok,) = address(BATCH).call(data);
            vm.assertTrue(!ok, "refused");
            data[4 + 32 * word] = 0;
        }
        (bool clean,) = address(BATCH).call(data);
        vm.assertTrue(clean, "accepted");
    }
}
