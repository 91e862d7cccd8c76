// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {ISettlementBatch} from "../../../contracts/interfaces/ISettlementBatch.sol";
import {SettlementBatchFixture} from "./SettlementBatchFixture.sol";

enum Attack {
    None,
    BurnAll,
    Invalid,
    Revert,
    RevertBomb,
    ReturnBomb,
    BurnThenAccept,
    Reenter
}

/// @notice A hostile wallet or token that can use its gas in any way.
contract Hostile {
    uint256 private constant BOMB_BYTES = 1_000_000;

    Attack private attack;
    address private target;
    bytes private data;

    function arm(Attack attack_, address target_, bytes calldata data_) external {
        (attack, target, data) = (attack_, target_, data_);
    }

    fallback() external {
        Attack chosen = attack;
        if (chosen == Attack.BurnAll) while (true) {}
        if (chosen == Attack.Revert) revert("no");
        if (chosen == Attack.BurnThenAccept) while (gasleft() > 70_000) {}
        if (chosen == Attack.Reenter) {
            (bool ok,) = target.call(data);
            if (!ok) revert("not re-entered");
        }
        if (chosen == Attack.Invalid) assembly { invalid() }
        if (chosen == Attack.RevertBomb) assembly { revert(0, BOMB_BYTES) }
        if (chosen == Attack.ReturnBomb) assembly { return(0, BOMB_BYTES) }
        assembly ("memory-safe") {
            mstore(0, shl(224, 0x1626ba7e))
            return(0, 32)
        }
    }
}

/// @notice Payers and tokens whose code attacks the batch: other payments still settle, and the cost is bounded.
contract SettlementBatchHostileTest is SettlementBatchFixture {
    address private constant TOKEN = 0x00000000000000000000000000000000707e4000;
    address private constant IMPLEMENTATION = 0x00000000000000000000000000000000BAD00001;
    /// @dev The gas limit of a skipped payer, and of the work around a call.
    uint256 private constant SMALL = 6_000;

    function hostileAt(address account) private returns (Hostile) {
        vm.etch(account, type(Hostile).runtimeCode);
        return Hostile(account);
    }

    /// @dev Makes an account delegate to the code (EIP-7702).
    function delegate(address account, Attack attack) private {
        hostileAt(IMPLEMENTATION);
        vm.etch(account, abi.encodePacked(hex"ef0100", IMPLEMENTATION));
        vm.assertEq(account.code.length, 23, "a delegation");
        Hostile(account).arm(attack, address(BATCH), "");
    }

    function gasOf(Item[] memory items) private returns (uint256 used) {
        bytes memory all = packed(items);
        used = gasleft();
        BATCH.settle(address(USDC), PAYEE, GAS_CAP, all);
        used -= gasleft();
    }

    function test_aDelegationIsRunWhenUsdcAsks() public {
        Item memory item = paymentOf(PAYER_KEY, USD);
        delegate(item.from, Attack.None);
        item.r = 0;
        vm.assertTrue(settleAlone(item), "USDC takes the code's word for the signature");
    }

    /// @dev The payer was an ordinary account in the simulation and has code when it is mined.
    function test_noCallIsMadeForAPayerThatHasCodeByThen() public {
        for (uint256 attack = 0; attack <= uint256(type(Attack).max); attack++) {
            uint256 clean = vm.snapshotState();
            Item[] memory items = payments(3);
            uint256 simulated = vm.snapshotState();
            uint256 honest = gasOf(items);
            vm.revertToState(simulated);
            delegate(items[1].from, Attack(attack));
            vm.expectEmit(true, true, true, true, address(BATCH));
            emit ISettlementBatch.Unsettled(2, 2);
            vm.assertTrue(gasOf(items) < honest, "a skipped payment costs less than a settled one");
            assertUnsettled(items, 2);
            vm.revertToState(clean);
        }
    }

    function test_manyPayersWithCodeCostLittle() public {
        Item[] memory items = payments(50);
        uint256 wanted = 0;
        for (uint256 i = 0; i < 49; i++) {
            delegate(items[i].from, Attack.BurnAll);
            wanted |= 1 << i;
        }
        vm.assertTrue(gasOf(items) < 49 * SMALL + GAS_CAP, "49 skipped, one settled");
        assertUnsettled(items, wanted);
    }

    function test_aPayerWithCodeNeedsNoGasForACall() public {
        Item[] memory items = payments(1);
        delegate(items[0].from, Attack.None);
        (uint256 failed, uint256 skipped) =
            BATCH.settle{gas: GAS_CAP / 2}(address(USDC), PAYEE, GAS_CAP, packed(items));
        assertMasks(failed, 1, skipped, 1);
    }

    function test_aCalleeNeverUsesMoreThanTheCap() public {
        uint256 cap = 3_000_000;
        Hostile token = hostileAt(TOKEN);
        bytes memory items = packed(payments(3));
        for (uint256 attack = 0; attack <= uint256(type(Attack).max); attack++) {
            token.arm(Attack(attack), address(BATCH), "");
            uint256 used = gasleft();
            (uint256 failed, uint256 skipped) = BATCH.settle{gas: 4 * cap}(address(token), PAYEE, cap, items);
            used -= gasleft();
            bool fails = attack != 0 && Attack(attack) != Attack.ReturnBomb && Attack(attack) != Attack.BurnThenAccept;
            assertMasks(failed, fails ? 7 : 0, skipped, 0);
            vm.assertTrue(used < 3 * (cap + SMALL), "three caps");
        }
    }

    /// @dev In each of its calls the token tries to settle two payments of USDC, one of which is valid.
    function test_aCallThatEntersAgainChangesNothingForTheOthers() public {
        Item[] memory items = payments(4);
        Item[] memory inner = new Item[](2);
        (inner[0], inner[1]) = (items[0], items[1]);
        items[1].value++;
        Hostile token = hostileAt(TOKEN);
        bytes memory again = abi.encodeCall(ISettlementBatch.settle, (address(USDC), PAYEE, GAS_CAP, packed(inner)));
        token.arm(Attack.Reenter, address(BATCH), again);
        (uint256 failed, uint256 skipped) = BATCH.settle(address(token), PAYEE, 3 * GAS_CAP, packed(items));
        assertMasks(failed, 0, skipped, 0);
        assertUnsettled(items, 2 | 4 | 8);
        token.arm(Attack.Revert, address(BATCH), "");
        (failed, skipped) = BATCH.settle(address(token), PAYEE, GAS_CAP, packed(items));
        assertMasks(failed, 15, skipped, 0);
        (failed, skipped) = settle(items);
        assertMasks(failed, 1 | 2, skipped, 0);
    }

    /// @dev The bomb itself uses 2.1 million gas, and copying its data would cost as much again.
    function test_returnDataIsNotCopied() public {
        Hostile token = hostileAt(TOKEN);
        bytes memory item = packed(paymentOf(PAYER_KEY, USD));
        Attack[2] memory bombs = [Attack.RevertBomb, Attack.ReturnBomb];
        for (uint256 i = 0; i < bombs.length; i++) {
            token.arm(bombs[i], address(BATCH), "");
            uint256 used = gasleft();
            BATCH.settle(address(token), PAYEE, 4_000_000, item);
            used -= gasleft();
            vm.assertTrue(used > 2_000_000 && used < 2_300_000, "the bomb once");
        }
    }
}
