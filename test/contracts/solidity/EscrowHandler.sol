// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {SmartWallet} from "../../../contracts/dev/SmartWallet.sol";
import {IEscrow} from "../../../contracts/interfaces/IEscrow.sol";
import {EscrowLedger} from "./EscrowLedger.sol";

/// @notice Every action on an escrow, in any order. Actions that must succeed are called directly, so the run reverts
/// if they fail.
contract EscrowHandler is EscrowLedger {
    /// @dev How often each action actually took effect in this run.
    struct Moves {
        uint256 holds;
        uint256 releases;
        uint256 refunds;
        uint256 timeouts;
        uint256 withdrawals;
        uint256 credits;
        uint256 refusals;
    }

    Moves public moves;
    uint256 public minted;
    uint256 public donated;
    IEscrow.PaymentInfo[] private infos;
    mapping(bytes32 id => uint256) private heldAt;
    address[] private payers;
    uint256[] private keys;
    address[] private merchants;

    constructor() {
        vm.recordLogs();
        setUp();
        for (uint256 i = 0; i < 3; i++) {
            keys.push(PAYER_KEY + i);
            payers.push(vm.addr(PAYER_KEY + i));
        }
        keys.push(PAYER_KEY);
        payers.push(address(new SmartWallet(payer)));
        // The merchants include a buyer that also sells, and the fee recipient.
        merchants = [MERCHANT, address(0xBeef), payers[0], FEES];
        enterEvents();
    }

    modifier entered() {
        _;
        enterEvents();
    }

    function hold(uint256 who, uint256 to, uint256 amount, bool small) external entered {
        setPaused(false);
        who %= payers.length;
        amount = between(amount, MINIMUM, small ? MINIMUM + 250 : 10_000 * uint256(USD));
        if (isBlocked(payers[who]) || isBlocked(address(escrow))) return;
        IEscrow.PaymentInfo memory info = terms(payers[who], uint120(amount));
        info.receiver = merchants[to % merchants.length];
        fund(info.payer, amount);
        minted += amount;
        authorize(info, paid(keys[who], info));
        infos.push(info);
        heldAt[idOf(info)] = block.timestamp;
        moves.holds++;
    }

    function release(uint256 which, bool relayed) external entered {
        (bool found, IEscrow.PaymentInfo memory info) = pick(which);
        if (!found || block.timestamp >= info.authorizationExpiry) return;
        bytes memory signature = relayed ? verdict(info, true, RECORD) : bytes("");
        vm.prank(relayed ? STRANGER : arbiter);
        escrow.release(info, RECORD, signature);
        moves.releases++;
        countCredit(info.receiver);
    }

    function refund(uint256 which, bool relayed) external entered {
        (bool found, IEscrow.PaymentInfo memory info) = pick(which);
        if (!found) return;
        bytes memory signature = relayed ? verdict(info, false, RECORD) : bytes("");
        vm.prank(relayed ? STRANGER : arbiter);
        escrow.refund(info, RECORD, signature);
        moves.refunds++;
        countCredit(info.payer);
    }

    /// @dev Succeeds from 30 minutes after the hold and not before, in any state of USDC.
    function refundByAnybody(uint256 which, address sender) external entered {
        (bool found, IEscrow.PaymentInfo memory info) = pick(which);
        if (!found || sender == arbiter) return;
        bool due = block.timestamp >= heldAt[idOf(info)] + 30 minutes;
        vm.prank(sender);
        try escrow.refund(info, RECORD, "") {
            vm.assertTrue(due, "not before 30 minutes");
            moves.timeouts++;
            countCredit(info.payer);
        } catch {
            vm.assertTrue(!due, "always from 30 minutes on");
            moves.refusals++;
        }
    }

    /// @dev Pays an account that is owed, unless USDC itself rejects the transfer.
    function withdraw(uint256 who, address sender) external entered {
        address account = anyAccount(who);
        for (uint256 i = 0; i < accounts() && escrow.owed(account) == 0; i++) {
            account = anyAccount(who % accounts() + i);
        }
        uint256 amount = escrow.owed(account);
        if (amount == 0) return;
        bool refuses = USDC.paused() || isBlocked(account) || isBlocked(address(escrow));
        vm.prank(sender);
        try escrow.withdraw(account) returns (uint256 got) {
            vm.assertTrue(!refuses && got == amount, "all of it");
            moves.withdrawals++;
        } catch {
            vm.assertTrue(refuses, "only USDC refuses");
            moves.refusals++;
            // The recorder also keeps events of reverted calls.
            vm.getRecordedLogs();
        }
    }

    /// @dev Tries forbidden actions: a decision without the arbiter, and a second decision.
    function meddle(uint256 which, address sender, bytes calldata signature) external entered {
        if (infos.length == 0 || sender == arbiter) return;
        IEscrow.PaymentInfo memory info = infos[which % infos.length];
        vm.prank(sender);
        (bool released,) = address(escrow).call(abi.encodeCall(IEscrow.release, (info, RECORD, signature)));
        vm.assertTrue(!released, "no release without the arbiter");
        if (statusOf(info) == IEscrow.Status.Held) return;
        vm.prank(arbiter);
        (bool again,) = address(escrow).call(abi.encodeCall(IEscrow.refund, (info, RECORD, "")));
        vm.assertTrue(!again, "one decision");
        moves.refusals++;
    }

    function pass(uint256 time) external {
        vm.warp(block.timestamp + between(time, 1, 40 minutes));
    }

    function pause(uint256 one) external entered {
        setPaused(one % 3 == 0);
    }

    function block_(uint256 who, uint256 one) external entered {
        setBlacklisted(anyAccount(who), one % 3 == 0);
    }

    function donate(uint256 amount) external entered {
        if (USDC.paused() || isBlocked(address(escrow))) return;
        amount = between(amount, 1, USD);
        fund(address(escrow), amount);
        minted += amount;
        donated += amount;
    }

    /// @dev Checks every invariant against the books.
    function check() external view {
        uint256 heldSum;
        for (uint256 i = 0; i < infos.length; i++) {
            bytes32 id = idOf(infos[i]);
            (IEscrow.Status status, uint48 refundableFrom) = escrow.payments(id);
            vm.assertTrue(status == book[id].status && status != IEscrow.Status.None, "the status in the events");
            vm.assertEq(refundableFrom, book[id].refundableFrom, "refundableFrom in the events");
            vm.assertEq(refundableFrom, heldAt[id] + 30 minutes, "30 minutes");
            if (status == IEscrow.Status.Held) heldSum += infos[i].maxAmount;
        }
        uint256 owedSum;
        uint256 all = USDC.balanceOf(address(escrow));
        for (uint256 i = 0; i < accounts(); i++) {
            address account = anyAccount(i);
            owedSum += escrow.owed(account);
            all += USDC.balanceOf(account);
            vm.assertEq(escrow.owed(account), bookOwedTo[account], "owed in the events");
            vm.assertEq(usdcPaid[account], bookPaid[account], "paid in the events");
        }
        vm.assertEq(heldSum, bookHeld, "held in the events");
        vm.assertEq(owedSum, bookOwed, "no other account is owed");
        vm.assertEq(USDC.balanceOf(address(escrow)), heldSum + owedSum + donated, "exact solvency");
        vm.assertEq(all, minted, "no other account was paid");
    }

    function countCredit(address account) private {
        if (USDC.paused() || isBlocked(account) || isBlocked(address(escrow))) moves.credits++;
    }

    function isBlocked(address account) private view returns (bool) {
        return USDC.isBlacklisted(account);
    }

    /// @dev The payers, the merchants that are not payers, and the fee recipient.
    function accounts() private view returns (uint256) {
        return payers.length + 3;
    }

    function anyAccount(uint256 who) private view returns (address) {
        who %= accounts() + 1;
        if (who < payers.length) return payers[who];
        return [MERCHANT, address(0xBeef), FEES, address(escrow)][who - payers.length];
    }

    /// @dev Picks a random held payment, if there is one.
    function pick(uint256 which) private view returns (bool, IEscrow.PaymentInfo memory) {
        for (uint256 i = 0; i < infos.length; i++) {
            IEscrow.PaymentInfo memory info = infos[(which % infos.length + i) % infos.length];
            if (statusOf(info) == IEscrow.Status.Held) return (true, info);
        }
        return (false, terms_());
    }

    function terms_() private pure returns (IEscrow.PaymentInfo memory nothing) {}
}
