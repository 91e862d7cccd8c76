// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

/// @title LogAnchor
/// @notice Fixes how long a transparency log was, and its root, at a block's time. Anyone may anchor any log under its own
/// address; who reads an anchor has to know whose it should be.
contract LogAnchor {
    struct Anchor {
        uint64 size;
        /// Where its event is.
        uint64 blockNumber;
        /// RFC 6962 root of the log's first `size` entries.
        bytes32 root;
    }

    /// @param by who has anchored it
    /// @param origin SHA-256 of the log's origin line, without a newline
    event Anchored(address indexed by, bytes32 indexed origin, uint64 size, bytes32 root);

    /// @notice The log was that long before.
    error NotLonger(uint64 anchored);

    /// @notice The newest anchor; all zero if there is none. Older ones are events.
    mapping(address by => mapping(bytes32 origin => Anchor)) public latest;

    /// @notice Anchors a log that has grown. A log that has not, or that was cut, is refused.
    function anchor(bytes32 origin, uint64 size, bytes32 root) external {
        Anchor storage before = latest[msg.sender][origin];
        if (size <= before.size) revert NotLonger(before.size);
        latest[msg.sender][origin] = Anchor(size, uint64(block.number), root);
        emit Anchored(msg.sender, origin, size, root);
    }
}
