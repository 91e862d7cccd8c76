// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

/// @title EventAnchor
/// @notice LogAnchor without state, which `npm run bench:gas` compares with it.
contract EventAnchor {
    event Anchored(address indexed by, bytes32 indexed origin, uint64 size, bytes32 root);

    function anchor(bytes32 origin, uint64 size, bytes32 root) external {
        emit Anchored(msg.sender, origin, size, root);
    }
}
