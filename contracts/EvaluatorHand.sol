// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

/// @title EvaluatorHand
/// @notice The evaluator that jobs name. It makes only the calls that its maker requests.
contract EvaluatorHand {
    address private immutable MAKER = msg.sender;

    /// @notice The caller is not the maker.
    error NotMaker(address got, address wanted);

    /// @notice Makes a call. Only the maker may call.
    /// @dev Bubbles up the target's revert data unchanged.
    /// @param target The contract to call.
    /// @param data The calldata.
    function act(address target, bytes calldata data) external {
        if (msg.sender != MAKER) revert NotMaker(msg.sender, MAKER);
        (bool ok, bytes memory answer) = target.call(data);
        if (ok) return;
        assembly ("memory-safe") {
            revert(add(answer, 0x20), mload(answer))
        }
    }
}
