// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

/// @title ISettlementBatch
/// @notice Submits many EIP-3009 authorizations (https://eips.ethereum.org/EIPS/eip-3009) in one transaction: transfers
/// of one token to one payee, or holds in one escrow. It has no state, no owner and no rights, and holds nothing. Any
/// caller could make the same calls without it, in one transaction each.
/// @dev For externally owned payers only. USDC asks a payer that has code whether it signed (ERC-1271), and that code
/// could use up the gas of the call, so no call is made for such a payer.
interface ISettlementBatch {
    /// @notice Some payments were not settled. Not emitted if all were.
    /// @param failed Bit i is set if payment i was not settled.
    /// @param skipped Bit i is set if no call was made for payment i because its payer has code. A subset of `failed`.
    event Unsettled(uint256 failed, uint256 skipped);

    /// @notice `items` is not a whole number of items, a call is not `authorize`, or there are more than 256 of them.
    error Malformed();
    /// @notice Not enough gas is left to give a call its cap. The transaction's gas limit is too low.
    /// @param index The payment whose call would have received less.
    error Starved(uint256 index);

    /// @notice Calls `transferWithAuthorization` on the token once for each item, in order. A call that fails leaves
    /// the others untouched.
    /// @dev A call to a token without code succeeds: call it only with a token that exists. Return data is not copied,
    /// and a token's return value is not checked; USDC returns nothing and reverts.
    /// @param token The token, such as USDC.
    /// @param to The payee of every item.
    /// @param gasCap The most gas a call may use. Every call gets that much, or the transaction reverts.
    /// @param items The payments, 134 bytes each: from (20), value (8), validAfter (5), validBefore (5), nonce (32),
    /// r (32) and s (32), whose highest bit is v - 27. Integers are big-endian.
    /// @return failed Bit i is set if payment i was not settled.
    /// @return skipped Bit i is set if no call was made for payment i because its payer has code. A subset of `failed`.
    function settle(address token, address to, uint256 gasCap, bytes calldata items)
        external
        returns (uint256 failed, uint256 skipped);

    /// @notice Places each of these holds, in order. A call that fails leaves the others untouched.
    /// @dev As with `settle`, call it only with a contract that is known. Only calls of `authorize` are made, and the
    /// payer whose code is checked is the one in the call itself.
    /// @param escrow An escrow or operator whose `authorize` anyone may call (IEscrow).
    /// @param gasCap The most gas a call may use. Every call gets that much, or the transaction reverts.
    /// @param calls The calldata of `authorize`, one for each hold.
    /// @return failed Bit i is set if hold i was not placed.
    /// @return skipped Bit i is set if no call was made for hold i because its payer has code. A subset of `failed`.
    function hold(address escrow, uint256 gasCap, bytes[] calldata calls)
        external
        returns (uint256 failed, uint256 skipped);
}
