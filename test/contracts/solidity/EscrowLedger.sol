// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {IEscrow} from "../../../contracts/interfaces/IEscrow.sol";
import {EscrowFixture} from "./EscrowFixture.sol";
import {Vm} from "./Vm.sol";

/// @notice A ledger of the escrow, reconstructed from its events alone.
abstract contract EscrowLedger is EscrowFixture {
    struct Entry {
        IEscrow.Status status;
        uint256 amount;
        uint48 refundableFrom;
    }

    address private feeRecipient;
    uint256 internal bookHeld;
    uint256 internal bookOwed;
    mapping(bytes32 id => Entry) internal book;
    mapping(address account => uint256) internal bookOwedTo;
    /// @dev The escrow's payments to each account, according to the ledger and to USDC's own events.
    mapping(address account => uint256) internal bookPaid;
    mapping(address account => uint256) internal usdcPaid;

    /// @dev Records the events emitted since the last call and asserts that each is a valid transition.
    function enterEvents() internal {
        Vm.Log[] memory logs = vm.getRecordedLogs();
        for (uint256 i = 0; i < logs.length; i++) {
            if (logs[i].emitter == address(escrow)) enter(logs[i]);
            else if (logs[i].emitter == address(USDC)) enterTransfer(logs[i]);
        }
    }

    function enter(Vm.Log memory log) private {
        bytes32 kind = log.topics[0];
        if (kind == IEscrow.Opened.selector) feeRecipient = accountIn(log.topics[3]);
        else if (kind == IEscrow.Held.selector) enterHold(log);
        else if (kind == IEscrow.Released.selector) enterRelease(log);
        else if (kind == IEscrow.Refunded.selector) enterRefund(log);
        else if (kind == IEscrow.Credited.selector) enterCredit(log);
        else if (kind == IEscrow.Withdrawn.selector) enterWithdrawal(log);
        else revert("an unknown event");
    }

    function enterHold(Vm.Log memory log) private {
        (uint256 amount,,,,, uint48 refundableFrom) =
            abi.decode(log.data, (uint256, uint48, uint48, uint48, uint256, uint48));
        Entry storage entry = step(log.topics[1], IEscrow.Status.None, IEscrow.Status.Held);
        (entry.amount, entry.refundableFrom) = (amount, refundableFrom);
        bookHeld += amount;
    }

    function enterRelease(Vm.Log memory log) private {
        (uint256 amount, uint256 fee,) = abi.decode(log.data, (uint256, uint256, bytes32));
        Entry storage entry = step(log.topics[1], IEscrow.Status.Held, IEscrow.Status.Released);
        vm.assertEq(amount, entry.amount, "a release of what was held");
        vm.assertEq(fee, amount / 100, "the fee");
        bookHeld -= amount;
        bookOwed += fee;
        bookOwedTo[feeRecipient] += fee;
        bookPaid[accountIn(log.topics[3])] += amount - fee;
    }

    function enterRefund(Vm.Log memory log) private {
        (uint256 amount,) = abi.decode(log.data, (uint256, bytes32));
        Entry storage entry = step(log.topics[1], IEscrow.Status.Held, IEscrow.Status.Refunded);
        vm.assertEq(amount, entry.amount, "a refund of what was held");
        bookHeld -= amount;
        bookPaid[accountIn(log.topics[2])] += amount;
    }

    function enterCredit(Vm.Log memory log) private {
        uint256 amount = abi.decode(log.data, (uint256));
        address account = accountIn(log.topics[2]);
        bookPaid[account] -= amount;
        bookOwedTo[account] += amount;
        bookOwed += amount;
    }

    function enterWithdrawal(Vm.Log memory log) private {
        uint256 amount = abi.decode(log.data, (uint256));
        address account = accountIn(log.topics[1]);
        bookOwedTo[account] -= amount;
        bookOwed -= amount;
        bookPaid[account] += amount;
    }

    function enterTransfer(Vm.Log memory log) private {
        if (log.topics[0] != keccak256("Transfer(address,address,uint256)")) return;
        if (accountIn(log.topics[1]) != address(escrow)) return;
        usdcPaid[accountIn(log.topics[2])] += abi.decode(log.data, (uint256));
    }

    /// @dev The only transitions are None to Held, and Held to Released or Refunded.
    function step(bytes32 id, IEscrow.Status from, IEscrow.Status to) private returns (Entry storage entry) {
        entry = book[id];
        vm.assertTrue(entry.status == from, "a known step");
        entry.status = to;
    }

    function accountIn(bytes32 topic) private pure returns (address) {
        return address(uint160(uint256(topic)));
    }
}
