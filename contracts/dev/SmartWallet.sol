// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {ISmartWallet} from "../interfaces/ISmartWallet.sol";

/// @title SmartWallet
/// @notice A minimal smart wallet that can pay; see ISmartWallet. For development and tests only.
contract SmartWallet is ISmartWallet {
    bytes4 private constant VALID = 0x1626ba7e;
    bytes4 private constant INVALID = 0xffffffff;

    /// @inheritdoc ISmartWallet
    address public immutable OWNER;

    /// @param owner The account that signs for the wallet and controls it.
    constructor(address owner) {
        OWNER = owner;
    }

    /// @notice Accepts ETH.
    receive() external payable {}

    /// @inheritdoc ISmartWallet
    function isValidSignature(bytes32 hash, bytes calldata signature) external view returns (bytes4) {
        if (signature.length != 65) return INVALID;
        bytes32 r = bytes32(signature[0:32]);
        bytes32 s = bytes32(signature[32:64]);
        address signer = ecrecover(hash, uint8(signature[64]), r, s);
        return signer != address(0) && signer == OWNER ? VALID : INVALID;
    }

    /// @inheritdoc ISmartWallet
    function execute(address target, uint256 value, bytes calldata data) external returns (bytes memory) {
        if (msg.sender != OWNER) revert NotOwner(msg.sender, OWNER);
        emit Executed(target, value, data);
        (bool ok, bytes memory result) = target.call{value: value}(data);
        if (!ok) {
            assembly ("memory-safe") {
                revert(add(result, 32), mload(result))
            }
        }
        return result;
    }
}
