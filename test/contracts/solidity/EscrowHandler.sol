// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {SmartWallet} from "../../../contracts/dev/SmartWallet.sol";
import {IEscrow} from "../../../contracts/interfaces/IEscrow.sol";
import {EscrowFixture} from "./EscrowFixture.sol";

/// @notice Every action on an escrow's payments, in any order, compared with a model. An action that the model allows
/// must succeed, and every other one must fail.
contract EscrowHandler is EscrowFixture {
    uint256 private minted;
    IEscrow.PaymentInfo[] private infos;
    address[] private payers;
    uint256[] private keys;
    address[] private accounts;
    mapping(bytes32 id => IEscrow.Status) private modelStatus;
    mapping(bytes32 id => uint256) private heldAt;
    /// @dev The expected USDC balances, including `store()`.
    mapping(address account => uint256) private modelBalance;
    /// @dev The escrow's expected debts. An operator keeps none.
    mapping(address account => uint256) private modelOwed;

    constructor() {
        setUp();
        for (uint256 i = 0; i < 3; i++) {
            keys.push(PAYER_KEY + i);
            payers.push(vm.addr(PAYER_KEY + i));
        }
        keys.push(PAYER_KEY);
        payers.push(address(new SmartWallet(payer)));
        accounts = payers;
        accounts.push(MERCHANT);
        accounts.push(address(0xBeef));
        accounts.push(FEES);
        accounts.push(arbiter);
        accounts.push(address(escrow));
        if (isEscrow()) return;
        accounts.push(store());
        accounts.push(payee());
    }

    function hold(uint256 who, uint256 to, uint256 amount, bool small) external {
        setPaused(false);
        who %= payers.length;
        amount = between(amount, MINIMUM, small ? MINIMUM + 250 : 10_000 * uint256(USD));
        if (isBlocked(payers[who]) || isBlocked(store()) || isBlocked(payee())) return;
        IEscrow.PaymentInfo memory info = terms(payers[who], uint120(amount));
        // The merchants include a buyer that also sells, and the fee recipient.
        info.receiver = [MERCHANT, address(0xBeef), payers[0], FEES][to % 4];
        fund(info.payer, amount);
        minted += amount;
        bytes memory signature = paid(keys[who], info);
        authorize(info, signature);
        modelBalance[store()] += amount;
        modelStatus[idOf(info)] = IEscrow.Status.Held;
        heldAt[idOf(info)] = block.timestamp;
        infos.push(info);
        // A payment is never held a second time, at any later status.
        vm.assertTrue(!attempt(STRANGER, abi.encodeCall(IEscrow.authorize, (info, amount, payee(), signature))), "once");
        moved("hold");
    }

    function release(uint256 which, bool relayed) external {
        (bool found, IEscrow.PaymentInfo memory info) = pick(which);
        if (!found) return;
        bytes memory signature = relayed ? verdict(info, true, RECORD) : bytes("");
        bool refuses = isRefused(info.receiver) || (!isEscrow() && isRefused(FEES));
        bool may = block.timestamp < info.authorizationExpiry && (isEscrow() || !refuses);
        bytes memory data = abi.encodeCall(IEscrow.release, (info, RECORD, signature));
        vm.assertTrue(attempt(relayed ? STRANGER : arbiter, data) == may, "a release, if the model allows it");
        if (refuses) moved("payout refused by USDC");
        if (!may) return;
        modelStatus[idOf(info)] = IEscrow.Status.Released;
        uint256 fee = info.maxAmount / 100;
        payOut(info.receiver, info.maxAmount - fee);
        if (isEscrow()) modelOwed[FEES] += fee;
        else payOut(FEES, fee);
        moved("release");
    }

    function refund(uint256 which, bool relayed) external {
        (bool found, IEscrow.PaymentInfo memory info) = pick(which);
        if (!found) return;
        bytes memory signature = relayed ? verdict(info, false, RECORD) : bytes("");
        bool ok = attempt(relayed ? STRANGER : arbiter, abi.encodeCall(IEscrow.refund, (info, RECORD, signature)));
        giveBack(info, ok, true);
        if (ok) moved("refund");
    }

    /// @dev Succeeds from 30 minutes after the hold and not before; an escrow's, in any state of USDC.
    function refundByAnybody(uint256 which, address sender) external {
        (bool found, IEscrow.PaymentInfo memory info) = pick(which);
        if (!found || sender == arbiter) return;
        bool due = block.timestamp >= heldAt[idOf(info)] + 30 minutes;
        bool ok = attempt(sender, abi.encodeCall(IEscrow.refund, (info, RECORD, "")));
        giveBack(info, ok, due);
        moved(ok ? "timeout" : "refusal");
    }

    /// @dev Pays an account that the escrow owes, unless USDC itself rejects the transfer.
    function withdraw(uint256 who, address sender) external {
        address account = accounts[who % accounts.length];
        for (uint256 i = 0; i < accounts.length && modelOwed[account] == 0; i++) {
            account = accounts[(who % accounts.length + i) % accounts.length];
        }
        uint256 amount = modelOwed[account];
        if (amount == 0) return;
        bool may = !isRefused(account);
        vm.assertTrue(attempt(sender, abi.encodeCall(IEscrow.withdraw, (account))) == may, "only USDC refuses");
        if (!may) return;
        modelOwed[account] = 0;
        payOut(account, amount);
        moved("withdrawal or reclaim");
    }

    /// @dev The payer's own reclaim, which bypasses the operator from `authorizationExpiry` on.
    function reclaim(uint256 which, bool late) external {
        (bool found, IEscrow.PaymentInfo memory info) = pick(which);
        if (!found || isEscrow()) return;
        if (late && block.timestamp < info.authorizationExpiry) vm.warp(info.authorizationExpiry);
        bool due = block.timestamp >= info.authorizationExpiry;
        vm.prank(info.payer);
        (bool ok,) = address(COMMERCE).call(abi.encodeCall(COMMERCE.reclaim, (info)));
        giveBack(info, ok, due);
        if (ok) moved("withdrawal or reclaim");
    }

    /// @dev Tries forbidden actions: a decision without the arbiter, a second decision, and a bypass of the operator.
    function meddle(uint256 which, address sender, bytes calldata signature) external {
        if (infos.length == 0 || sender == arbiter || sender == address(escrow)) return;
        IEscrow.PaymentInfo memory info = infos[which % infos.length];
        vm.assertTrue(!attempt(sender, abi.encodeCall(IEscrow.release, (info, RECORD, signature))), "no release");
        if (!isEscrow()) {
            vm.prank(sender);
            (bool captured,) =
                address(COMMERCE).call(abi.encodeWithSelector(0x644cd79a, info, info.maxAmount, 100, FEES));
            vm.prank(sender);
            (bool voided,) = address(COMMERCE).call(abi.encodeCall(COMMERCE.void, (info)));
            vm.assertTrue(!captured && !voided, "not past the operator");
        }
        if (modelStatus[idOf(info)] == IEscrow.Status.Held) return;
        vm.assertTrue(!attempt(arbiter, abi.encodeCall(IEscrow.refund, (info, RECORD, ""))), "one decision");
        vm.assertTrue(!attempt(arbiter, abi.encodeCall(IEscrow.release, (info, RECORD, ""))), "one decision");
        moved("refusal");
    }

    function pass(uint256 time) external {
        vm.warp(block.timestamp + between(time, 1, 2 hours));
    }

    function pause(uint256 one) external {
        setPaused(one % 3 == 0);
    }

    function block_(uint256 who, uint256 one) external {
        setBlacklisted(accounts[who % accounts.length], one % 3 == 0);
    }

    function donate(uint256 amount, uint256 who) external {
        address to = accounts[who % accounts.length];
        if (isRefused(to)) return;
        amount = between(amount, 1, USD);
        fund(to, amount);
        minted += amount;
        modelBalance[to] += amount;
    }

    /// @dev Checks every invariant. Each account has exactly its balance in the model, so no other account was paid.
    function check() external view {
        uint256 all;
        for (uint256 i = 0; i < accounts.length; i++) {
            vm.assertEq(USDC.balanceOf(accounts[i]), modelBalance[accounts[i]], "the balance in the model");
            all += modelBalance[accounts[i]];
            if (isEscrow()) assertOwed(accounts[i], modelOwed[accounts[i]]);
        }
        vm.assertEq(all, minted, "no other account was paid");
        for (uint256 i = 0; i < infos.length; i++) {
            bytes32 id = idOf(infos[i]);
            (IEscrow.Status status, uint48 refundableFrom) = escrow.payments(id);
            vm.assertTrue(status == modelStatus[id], "the status in the model");
            vm.assertEq(refundableFrom, heldAt[id] + 30 minutes, "30 minutes after the first hold");
        }
    }

    function isEscrow() private pure returns (bool) {
        return custodian() == Custodian.Escrow;
    }

    /// @dev Records that a move took effect, so that the run shows that the random lives made every move.
    function moved(string memory move) private {
        vm.writeLine(isEscrow() ? "cache/escrow-moves.txt" : "cache/operator-moves.txt", move);
    }

    /// @dev A refund that is due succeeds; an operator's, unless USDC refuses it.
    function giveBack(IEscrow.PaymentInfo memory info, bool ok, bool due) private {
        bool refuses = isRefused(info.payer);
        vm.assertTrue(ok == (due && (isEscrow() || !refuses)), "a refund, if the model allows it");
        if (due && refuses) moved("payout refused by USDC");
        if (!ok) return;
        modelStatus[idOf(info)] = IEscrow.Status.Refunded;
        payOut(info.payer, info.maxAmount);
    }

    /// @dev A payout that USDC refuses is owed. An operator's decision reverts instead, so it never comes here.
    function payOut(address account, uint256 amount) private {
        if (isRefused(account)) {
            modelOwed[account] += amount;
            return;
        }
        modelBalance[store()] -= amount;
        modelBalance[account] += amount;
    }

    function attempt(address sender, bytes memory data) private returns (bool ok) {
        vm.prank(sender);
        (ok,) = address(escrow).call(data);
    }

    function isBlocked(address account) private view returns (bool) {
        return USDC.isBlacklisted(account);
    }

    function isRefused(address account) private view returns (bool) {
        return USDC.paused() || isBlocked(account) || isBlocked(store());
    }

    /// @dev Picks a random held payment, if there is one.
    function pick(uint256 which) private view returns (bool, IEscrow.PaymentInfo memory none) {
        for (uint256 i = 0; i < infos.length; i++) {
            IEscrow.PaymentInfo memory info = infos[(which % infos.length + i) % infos.length];
            if (modelStatus[idOf(info)] == IEscrow.Status.Held) return (true, info);
        }
        return (false, none);
    }
}

/// @notice The same actions on an operator's payments.
contract OperatorHandler is EscrowHandler {
    function custodian() internal pure override returns (Custodian) {
        return Custodian.Commerce;
    }
}
