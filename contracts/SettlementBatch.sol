// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {IEscrow} from "./interfaces/IEscrow.sol";
import {ISettlementBatch} from "./interfaces/ISettlementBatch.sol";
import {IUsdc} from "./interfaces/IUsdc.sol";

/// @title SettlementBatch
/// @notice See ISettlementBatch.
contract SettlementBatch is ISettlementBatch {
    uint256 private constant ITEM_LENGTH = 134;
    /// @dev The number of bits in the masks.
    uint256 private constant MOST_ITEMS = 256;
    /// @dev An upper bound on the gas from the gas check to the start of the call: 2,600 for a token that this
    /// transaction has not touched yet, and about 60 around it.
    uint256 private constant CALL_COST = 3_000;
    /// @dev The position of the payer in the calldata of `authorize`, after the selector and the operator.
    uint256 private constant PAYER_START = 36;
    uint256 private constant PAYER_END = 68;

    /// @inheritdoc ISettlementBatch
    function settle(address token, address to, uint256 gasCap, bytes calldata items)
        external
        returns (uint256 failed, uint256 skipped)
    {
        if (items.length % ITEM_LENGTH != 0 || items.length > MOST_ITEMS * ITEM_LENGTH) revert Malformed();
        // A call gets at most 63/64 of the remaining gas (EIP-150).
        uint256 needed = gasCap * 64 / 63 + CALL_COST;
        bytes memory data = abi.encodeCall(IUsdc.transferWithAuthorization, (address(0), to, 0, 0, 0, 0, 0, 0, 0));
        uint256 count = items.length / ITEM_LENGTH;
        for (uint256 i = 0; i < count; i++) {
            address payer = _fill(data, items, i * ITEM_LENGTH);
            if (payer.code.length != 0) {
                skipped |= 1 << i;
            } else {
                if (gasleft() < needed) revert Starved(i);
                if (!_call(token, gasCap, data)) failed |= 1 << i;
            }
        }
        failed |= skipped;
        if (failed != 0) emit Unsettled(failed, skipped);
    }

    /// @inheritdoc ISettlementBatch
    function hold(address escrow, uint256 gasCap, bytes[] calldata calls)
        external
        returns (uint256 failed, uint256 skipped)
    {
        if (calls.length > MOST_ITEMS) revert Malformed();
        uint256 needed = gasCap * 64 / 63 + CALL_COST;
        for (uint256 i = 0; i < calls.length; i++) {
            if (_payerIn(calls[i]).code.length != 0) {
                skipped |= 1 << i;
            } else {
                bytes memory data = calls[i];
                if (gasleft() < needed) revert Starved(i);
                if (!_call(escrow, gasCap, data)) failed |= 1 << i;
            }
        }
        failed |= skipped;
        if (failed != 0) emit Unsettled(failed, skipped);
    }

    /// @dev Returns the second word of the terms, which are the first argument. Reverts if the call is not `authorize`.
    function _payerIn(bytes calldata data) private pure returns (address payer) {
        if (data.length < PAYER_END || bytes4(data) != IEscrow.authorize.selector) revert Malformed();
        payer = address(uint160(uint256(bytes32(data[PAYER_START:PAYER_END]))));
    }

    /// @dev Overwrites the arguments of the call, except `to`, with the item's fields, and returns its payer.
    function _fill(bytes memory data, bytes calldata items, uint256 start) private pure returns (address payer) {
        assembly ("memory-safe") {
            let item := add(items.offset, start)
            let first := calldataload(item)
            let times := calldataload(add(item, 28))
            let vs := calldataload(add(item, 102))
            let arguments := add(data, 36)
            payer := shr(96, first)
            mstore(arguments, payer)
            mstore(add(arguments, 64), and(shr(32, first), 0xffffffffffffffff))
            mstore(add(arguments, 96), shr(216, times))
            mstore(add(arguments, 128), and(shr(176, times), 0xffffffffff))
            mstore(add(arguments, 160), calldataload(add(item, 38)))
            mstore(add(arguments, 192), add(27, shr(255, vs)))
            mstore(add(arguments, 224), calldataload(add(item, 70)))
            mstore(add(arguments, 256), shr(1, shl(1, vs)))
        }
    }

    /// @dev Solidity's own calls copy the return data to memory, at the caller's cost.
    function _call(address token, uint256 gasCap, bytes memory data) private returns (bool ok) {
        assembly ("memory-safe") {
            ok := call(gasCap, token, 0, add(data, 32), mload(data), 0, 0)
        }
    }
}
