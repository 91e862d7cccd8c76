// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

/// @title LogAnchor
/// @notice Records the size and root of a transparency log at a block's time. Anyone may anchor any log under their
/// address, so a reader has to know which account's anchors to trust.
contract LogAnchor {
    struct Anchor {
        uint64 size;
        /// The block of its event.
        uint64 blockNumber;
        /// RFC 6962 root of the log's first `size` entries.
        bytes32 root;
    }

    /// @param by the account that anchored it
    /// @param origin SHA-256 of the log's origin line, without a newline
    event Anchored(address indexed by, bytes32 indexed origin, uint64 size, bytes32 root);

    /// @notice The size does not exceed the anchored size.
    error NotLonger(uint64 anchored);

    /// @notice The newest anchor; all zero if there is none. Older ones are events.
    mapping(address by => mapping(bytes32 origin => Anchor)) public latest;

    /// @notice Anchors a log that has grown. Reverts unless its size is larger than before.
    function anchor(bytes32 origin, uint64 size, bytes32 root) external {
        Anchor storage before = latest[msg.sender][origin];
        if (size <= before.size) revert NotLonger(before.size);
        latest[msg.sender][origin] = Anchor(size, uint64(block.number), root);
        emit Anchored(msg.sender, origin, size, root);
    }
}
