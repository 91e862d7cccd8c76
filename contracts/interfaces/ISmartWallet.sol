// SPDX-License-Identifier: UNLICENSED
pragma solidity 0.8.37;

/// @title ISmartWallet
/// @notice A smart wallet that one externally owned account owns for ever. It pays like any other account, by ERC-1271
/// signatures (https://eips.ethereum.org/EIPS/eip-1271), and it calls other contracts when its owner says so.
/// @dev For development and tests only. The owner signs a digest as it is, without the wallet's address in it: a signature
/// holds for every wallet of the same owner. Wallets that hold real money bind it, see ERC-7739.
interface ISmartWallet {
    /// @notice The caller may not do this.
    /// @param got The account that called.
    /// @param wanted The owner.
    error NotOwner(address got, address wanted);

    /// @notice The wallet made a call for its owner.
    /// @param target The account that was called.
    /// @param value The wei sent along.
    /// @param data The call data.
    event Executed(address indexed target, uint256 value, bytes data);

    /// @notice The account whose signatures and orders count.
    /// @return owner The owner, fixed at construction.
    function OWNER() external view returns (address owner);

    /// @notice Whether the owner signed this digest.
    /// @param hash The digest that was signed.
    /// @param signature 65 bytes: r, s and v (27 or 28).
    /// @return magicValue `0x1626ba7e` when it did, `0xffffffff` otherwise. Never reverts.
    function isValidSignature(bytes32 hash, bytes calldata signature) external view returns (bytes4 magicValue);

    /// @notice Calls another contract as the wallet. Only the owner may.
    /// @dev A revert of the called contract is passed on as it is.
    /// @param target The account to call.
    /// @param value The wei to send along, from the wallet's own balance.
    /// @param data The call data.
    /// @return result What the call returned.
    function execute(address target, uint256 value, bytes calldata data) external returns (bytes memory result);
}
