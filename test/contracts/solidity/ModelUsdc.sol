// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

/// @title ModelUsdc
/// @notice A token small enough for proofs. It checks no signature, so a proof over it holds for every signature. It
/// stores the arguments of the last check, and can be set to refuse transfers to any account.
contract ModelUsdc {
    enum Answer {
        Pays,
        Reverts,
        ReturnsFalse
    }

    error Refused();

    mapping(address account => uint256 amount) public balanceOf;
    /// @notice The outcome of transfers to the account.
    mapping(address account => Answer answer) public answerTo;
    /// @notice The nonce of the last authorization.
    bytes32 public nonce;
    /// @notice The start and the end of the last authorization's validity.
    uint256[2] public validity;

    function mint(address account, uint256 amount) external {
        balanceOf[account] += amount;
    }

    function answer(address account, Answer wanted) external {
        answerTo[account] = wanted;
    }

    function transfer(address to, uint256 value) external returns (bool) {
        Answer wanted = answerTo[to];
        if (wanted == Answer.Reverts) revert Refused();
        if (wanted == Answer.ReturnsFalse) return false;
        balanceOf[msg.sender] -= value;
        balanceOf[to] += value;
        return true;
    }

    function receiveWithAuthorization(
        address from,
        address to,
        uint256 value,
        uint256 validAfter,
        uint256 validBefore,
        bytes32 nonce_,
        bytes calldata
    ) external {
        if (msg.sender != to) revert Refused();
        nonce = nonce_;
        validity = [validAfter, validBefore];
        balanceOf[from] -= value;
        balanceOf[to] += value;
    }
}
