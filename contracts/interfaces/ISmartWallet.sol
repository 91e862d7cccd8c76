// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

/// @title ISmartWallet
/// @notice A smart wallet permanently owned by one externally owned account. It pays like any other account, using
/// ERC-1271 signatures (https://eips.ethereum.org/EIPS/eip-1271), and makes calls on its owner's behalf.
/// @dev For development and tests only. The owner signs the raw digest, without the wallet's address, so a signature is
/// valid for every wallet of the same owner. Wallets that hold real money bind it to the wallet; see ERC-7739.
interface ISmartWallet {
    /// @notice The caller is not the owner.
    /// @param got The caller.
    /// @param wanted The owner.
    error NotOwner(address got, address wanted);

    /// @notice The wallet made a call for its owner.
    /// @param target The account that was called.
    /// @param value The amount of wei sent.
    /// @param data The calldata.
    event Executed(address indexed target, uint256 value, bytes data);

    /// @notice The account that signs for the wallet and controls it.
    /// @return owner The owner, set at construction.
    function OWNER() external view returns (address owner);

    /// @notice Checks whether the owner signed a digest. Never reverts.
    /// @param hash The digest.
    /// @param signature The 65-byte signature: r, s and v (27 or 28).
    /// @return magicValue `0x1626ba7e` if the owner signed it, otherwise `0xffffffff`.
    function isValidSignature(bytes32 hash, bytes calldata signature) external view returns (bytes4 magicValue);

    /// @notice Makes a call from the wallet. Only the owner may call.
    /// @dev Bubbles up the target's revert data unchanged.
    /// @param target The account to call.
    /// @param value The amount of wei to send from the wallet's balance.
    /// @param data The calldata.
    /// @return result The return data.
    function execute(address target, uint256 value, bytes calldata data) external returns (bytes memory result);
}
