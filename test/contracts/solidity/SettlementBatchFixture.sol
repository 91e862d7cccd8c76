// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {ISettlementBatch} from "../../../contracts/interfaces/ISettlementBatch.sol";
import {IUsdc} from "../../../contracts/interfaces/IUsdc.sol";
import {UsdcFixture} from "./UsdcFixture.sol";
import {Vm} from "./Vm.sol";

/// @notice A batch with the production bytecode, and payers who sign. Items are packed from the published layout.
abstract contract SettlementBatchFixture is UsdcFixture {
    struct Item {
        address from;
        uint64 value;
        uint40 validAfter;
        uint40 validBefore;
        bytes32 nonce;
        uint8 v;
        bytes32 r;
        bytes32 s;
    }

    ISettlementBatch internal constant BATCH = ISettlementBatch(0x0000000000000000000000000000000000Ba7C4E);
    address internal constant PAYEE = 0x00000000000000000000000000000000C0FfEE03;
    uint256 internal constant PAYER_KEY = 0x9a7e4;
    uint256 internal constant GAS_CAP = 100_000;
    uint64 internal constant USD = 1_000_000;
    uint256 private lastNonce;

    function setUp() public virtual {
        installUsdc();
        string memory artifact = "artifacts/contracts/SettlementBatch.sol/SettlementBatch.json";
        vm.etch(address(BATCH), vm.parseBytes(fieldOf(artifact, ".deployedBytecode")));
    }

    /// @dev A signed payment from an account that holds exactly its amount.
    function paymentOf(uint256 key, uint64 value) internal returns (Item memory item) {
        item = unsigned(key, value);
        fund(item.from, value);
        sign(key, item);
    }

    function unsigned(uint256 key, uint64 value) internal returns (Item memory item) {
        item.from = vm.addr(key);
        item.value = value;
        item.validAfter = uint40(block.timestamp - 600);
        item.validBefore = uint40(block.timestamp + 600);
        item.nonce = keccak256(abi.encode(++lastNonce));
    }

    /// @dev Payments of one dollar each, from different accounts.
    function payments(uint256 count) internal returns (Item[] memory items) {
        items = new Item[](count);
        for (uint256 i = 0; i < count; i++) {
            items[i] = paymentOf(PAYER_KEY + i, USD);
        }
    }

    function sign(uint256 key, Item memory item) internal view {
        bytes32 digest = usdcDigest(
            keccak256(
                abi.encode(
                    TRANSFER_TYPEHASH, item.from, PAYEE, item.value, item.validAfter, item.validBefore, item.nonce
                )
            )
        );
        (item.v, item.r, item.s) = vm.sign(key, digest);
    }

    function packed(Item memory item) internal pure returns (bytes memory) {
        uint256 vs = uint256(item.s) | uint256(item.v - 27) << 255;
        return abi.encodePacked(
            item.from, item.value, item.validAfter, item.validBefore, item.nonce, item.r, vs
        );
    }

    function packed(Item[] memory items) internal pure returns (bytes memory all) {
        for (uint256 i = 0; i < items.length; i++) {
            all = bytes.concat(all, packed(items[i]));
        }
    }

    function settle(Item[] memory items) internal returns (uint256 failed, uint256 skipped) {
        return BATCH.settle(address(USDC), PAYEE, GAS_CAP, packed(items));
    }

    /// @dev Submits one authorization directly.
    function settleAlone(Item memory item) internal returns (bool ok) {
        (ok,) = address(USDC).call(
            abi.encodeCall(
                IUsdc.transferWithAuthorization,
                (
                    item.from,
                    PAYEE,
                    item.value,
                    item.validAfter,
                    item.validBefore,
                    item.nonce,
                    item.v,
                    item.r,
                    item.s
                )
            )
        );
    }

    function isUsed(Item memory item) internal view returns (bool) {
        return USDC.authorizationState(item.from, item.nonce);
    }

    /// @dev Asserts that all items except those in the mask are used, and that the payee holds their sum.
    function assertUnsettled(Item[] memory items, uint256 mask) internal view {
        uint256 sum = 0;
        for (uint256 i = 0; i < items.length; i++) {
            bool isLeft = mask >> i & 1 == 1;
            vm.assertTrue(isUsed(items[i]) != isLeft, "the authorization is used when it is settled, and only then");
            if (!isLeft) sum += items[i].value;
        }
        vm.assertEq(USDC.balanceOf(PAYEE), sum, "the payee's USDC");
        vm.assertEq(USDC.balanceOf(address(BATCH)), 0, "the batch holds nothing");
    }

    function assertMasks(uint256 failed, uint256 wantedFailed, uint256 skipped, uint256 wantedSkipped) internal pure {
        vm.assertEq(failed, wantedFailed, "failed");
        vm.assertEq(skipped, wantedSkipped, "skipped");
    }

    /// @dev Events of the batch itself since `recordLogs`.
    function eventsOfBatch() internal returns (uint256 count) {
        Vm.Log[] memory logs = vm.getRecordedLogs();
        for (uint256 i = 0; i < logs.length; i++) {
            if (logs[i].emitter == address(BATCH)) count++;
        }
    }
}
