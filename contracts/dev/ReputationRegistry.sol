// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {IdentityRegistry} from "./IdentityRegistry.sol";

/// @title ReputationRegistry
/// @notice The parts of ERC-8004's registry of feedback that the service uses, written from the standard's text: anyone
/// except an agent's owner can give feedback, counted from 1 for each agent and giver, and its giver can revoke it. For
/// development and tests only.
contract ReputationRegistry {
    struct Feedback {
        int128 value;
        uint8 valueDecimals;
        bool isRevoked;
        string tag1;
        string tag2;
    }

    error SelfFeedback(address got);
    error TooManyDecimals(uint8 got);
    error UnknownFeedback(uint64 feedbackIndex);
    error AlreadyRevoked(uint64 feedbackIndex);

    event NewFeedback(
        uint256 indexed agentId,
        address indexed clientAddress,
        uint64 feedbackIndex,
        int128 value,
        uint8 valueDecimals,
        string indexed indexedTag1,
        string tag1,
        string tag2,
        string endpoint,
        string feedbackURI,
        bytes32 feedbackHash
    );
    event FeedbackRevoked(uint256 indexed agentId, address indexed clientAddress, uint64 indexed feedbackIndex);

    IdentityRegistry private immutable _IDENTITY;
    mapping(uint256 agentId => mapping(address client => Feedback[])) private _given;

    constructor(IdentityRegistry identity) {
        _IDENTITY = identity;
    }

    function giveFeedback(
        uint256 agentId,
        int128 value,
        uint8 valueDecimals,
        string memory tag1,
        string memory tag2,
        string memory endpoint,
        string memory feedbackURI,
        bytes32 feedbackHash
    ) external {
        if (valueDecimals > 18) revert TooManyDecimals(valueDecimals);
        if (_IDENTITY.isAuthorizedOrOwner(msg.sender, agentId)) revert SelfFeedback(msg.sender);
        _given[agentId][msg.sender].push(Feedback(value, valueDecimals, false, tag1, tag2));
        emit NewFeedback(
            agentId,
            msg.sender,
            getLastIndex(agentId, msg.sender),
            value,
            valueDecimals,
            tag1,
            tag1,
            tag2,
            endpoint,
            feedbackURI,
            feedbackHash
        );
    }

    function revokeFeedback(uint256 agentId, uint64 feedbackIndex) external {
        Feedback storage feedback = _feedback(agentId, msg.sender, feedbackIndex);
        if (feedback.isRevoked) revert AlreadyRevoked(feedbackIndex);
        feedback.isRevoked = true;
        emit FeedbackRevoked(agentId, msg.sender, feedbackIndex);
    }

    function getIdentityRegistry() external view returns (address) {
        return address(_IDENTITY);
    }

    function readFeedback(uint256 agentId, address clientAddress, uint64 feedbackIndex)
        external
        view
        returns (int128 value, uint8 valueDecimals, string memory tag1, string memory tag2, bool isRevoked)
    {
        Feedback storage feedback = _feedback(agentId, clientAddress, feedbackIndex);
        return (feedback.value, feedback.valueDecimals, feedback.tag1, feedback.tag2, feedback.isRevoked);
    }

    function getLastIndex(uint256 agentId, address clientAddress) public view returns (uint64) {
        return uint64(_given[agentId][clientAddress].length);
    }

    function _feedback(uint256 agentId, address client, uint64 feedbackIndex) private view returns (Feedback storage) {
        Feedback[] storage given = _given[agentId][client];
        if (feedbackIndex == 0 || feedbackIndex > given.length) revert UnknownFeedback(feedbackIndex);
        return given[feedbackIndex - 1];
    }
}
