// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {IEscrow} from "../../../contracts/interfaces/IEscrow.sol";
import {LikelyPromises} from "./LikelyPromises.sol";
import {ModelUsdc} from "./ModelUsdc.sol";

contract EscrowPromisesTest is LikelyPromises {
    function install() internal override {
        escrow = IEscrow(create("Escrow", abi.encode(usdc, ARBITER, FEES)));
        custody = payee = address(escrow);
    }

    function owes() internal pure override returns (bool) {
        return true;
    }

    function feeOf(uint256 amount) internal pure override returns (uint256) {
        return amount / 100;
    }

    /// @notice A withdrawal by any sender pays the account what it is owed, and pays no other account.
    function check_aWithdrawalIsTheAccounts(Sale memory sale, address account, address sender, address other) public {
        IEscrow.PaymentInfo memory info = held(sale);
        usdc.answer(info.receiver, ModelUsdc.Answer.ReturnsFalse);
        Attempt memory by;
        (by.sender, by.time) = (ARBITER, NOW);
        if (!attempt(info, true, by)) return;
        usdc.answer(info.receiver, ModelUsdc.Answer.Pays);
        vm.assume(other != account && other != custody && account != custody);
        (Wealth memory before, Wealth memory third) = (wealthOf(account), wealthOf(other));
        vm.prank(sender);
        (bool ok,) = address(escrow).call(abi.encodeCall(IEscrow.withdraw, (account)));
        vm.assertTrue(ok == (before.owed > 0), "an account that is owed is paid");
        Wealth memory wealth = wealthOf(account);
        vm.assertTrue(wealth.owed == 0 && sum(wealth) == sum(before), "all of it, once");
        requireSame(third, other);
    }

    function testFuzz_aWithdrawalIsTheAccounts(uint120 amount, uint8 who, uint8 by, uint8 third) public {
        address[5] memory people = [FEES, address(0xB0B0), address(0xB0B1), ARBITER, address(0xDead)];
        Sale memory sale = Sale(people[1], people[2], MINIMUM + amount / 2, NOW + 1 hours, 1);
        vm.assume(who % 5 != third % 5);
        check_aWithdrawalIsTheAccounts(sale, people[who % 5], people[by % 5], people[third % 5]);
    }
}
