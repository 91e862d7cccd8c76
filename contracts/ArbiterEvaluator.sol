// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {EvaluatorHand} from "./EvaluatorHand.sol";
import {VerdictLib} from "./VerdictLib.sol";
import {IArbiterEvaluator} from "./interfaces/IArbiterEvaluator.sol";
import {IERC20} from "./interfaces/IERC20.sol";
import {IJobs} from "./interfaces/IJobs.sol";

/// @title ArbiterEvaluator
/// @notice See IArbiterEvaluator.
contract ArbiterEvaluator is IArbiterEvaluator {
    /// @inheritdoc IArbiterEvaluator
    uint64 public constant MAX_AGE = 1 days;
    /// @inheritdoc IArbiterEvaluator
    address public immutable ARBITER;
    /// @inheritdoc IArbiterEvaluator
    address public immutable FEE_RECIPIENT;
    /// @dev The implementation of which every evaluator is a clone.
    address private immutable HAND = address(new EvaluatorHand());

    /// @param arbiter The account whose verdicts count.
    /// @param feeRecipient The account that `sweep` pays.
    constructor(address arbiter, address feeRecipient) {
        if (arbiter == address(0) || feeRecipient == address(0)) revert ZeroAddress();
        ARBITER = arbiter;
        FEE_RECIPIENT = feeRecipient;
    }

    /// @inheritdoc IArbiterEvaluator
    function evaluate(
        Terms calldata terms,
        address jobs,
        uint256 jobId,
        VerdictLib.Verdict calldata verdict,
        bytes calldata signature
    ) external {
        if (verdict.conditionsSha256 != terms.conditionsSha256) {
            revert WrongConditions(verdict.conditionsSha256, terms.conditionsSha256);
        }
        address evaluator = evaluatorOf(terms);
        bytes32 deal = keccak256(bytes(dealRefOf(evaluator, jobs, jobId)));
        if (verdict.dealRefHash != deal) revert WrongDeal(verdict.dealRefHash, deal);
        VerdictLib.check(verdict, signature, ARBITER, MAX_AGE);
        if (verdict.outcome == VerdictLib.Outcome.Escalate) revert NothingDecided();
        bool isComplete = verdict.outcome == VerdictLib.Outcome.Release;
        if (!isComplete && verdict.issuedAt < terms.rejectFrom) {
            revert IssuedTooEarly(verdict.issuedAt, terms.rejectFrom);
        }

        bytes32 reason = VerdictLib.digest(verdict);
        emit Evaluated(jobs, jobId, evaluator, isComplete, reason, verdict.id);
        bytes memory decision = isComplete
            ? abi.encodeCall(IJobs.complete, (jobId, reason, ""))
            : abi.encodeCall(IJobs.reject, (jobId, reason, ""));
        _handOf(terms, evaluator).act(jobs, decision);
    }

    /// @inheritdoc IArbiterEvaluator
    function sweep(Terms calldata terms, IERC20 token) external {
        address evaluator = evaluatorOf(terms);
        bytes memory transfer = abi.encodeCall(IERC20.transfer, (FEE_RECIPIENT, token.balanceOf(evaluator)));
        _handOf(terms, evaluator).act(address(token), transfer);
    }

    /// @inheritdoc IArbiterEvaluator
    function evaluatorOf(Terms calldata terms) public view returns (address) {
        bytes32 salt = keccak256(abi.encode(terms));
        bytes32 codeHash = keccak256(_creationCode());
        return address(uint160(uint256(keccak256(abi.encodePacked(bytes1(0xff), address(this), salt, codeHash)))));
    }

    /// @inheritdoc IArbiterEvaluator
    function dealRefOf(address evaluator, address jobs, uint256 jobId) public view returns (string memory) {
        bytes32 id = keccak256(abi.encode(block.chainid, evaluator, jobs, jobId));
        bytes16 digits = "0123456789abcdef";
        bytes memory text = new bytes(66);
        (text[0], text[1]) = ("0", "x");
        for (uint256 i = 0; i < 32; i++) {
            text[2 + 2 * i] = digits[uint8(id[i]) >> 4];
            text[3 + 2 * i] = digits[uint8(id[i]) & 15];
        }
        return string(text);
    }

    /// @dev Deploys the evaluator before its first call.
    function _handOf(Terms calldata terms, address evaluator) private returns (EvaluatorHand) {
        if (evaluator.code.length == 0) {
            bytes memory code = _creationCode();
            bytes32 salt = keccak256(abi.encode(terms));
            assembly ("memory-safe") {
                pop(create2(0, add(code, 0x20), mload(code), salt))
            }
        }
        return EvaluatorHand(evaluator);
    }

    /// @dev Returns the creation code of a minimal proxy (ERC-1167).
    function _creationCode() private view returns (bytes memory) {
        return abi.encodePacked(hex"3d602d80600a3d3981f3363d3d373d3d3d363d73", HAND, hex"5af43d82803e903d91602b57fd5bf3");
    }
}
