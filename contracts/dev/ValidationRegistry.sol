// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {IdentityRegistry} from "./IdentityRegistry.sol";

/// @title ValidationRegistry
/// @notice The parts of ERC-8004's registry of validations that the service uses, written from the standard's text: an
/// agent's owner names a validator, who alone responds, and may respond again. For development and tests only.
contract ValidationRegistry {
    struct Validation {
        address validator;
        uint256 agentId;
        uint8 response;
        bytes32 responseHash;
        string tag;
        uint256 lastUpdate;
    }

    error NotTheOwner(address got);
    error NotTheValidator(address got);
    error AlreadyRequested(bytes32 requestHash);
    error UnknownRequest(bytes32 requestHash);
    error NotAPercentage(uint8 got);

    event ValidationRequest(
        address indexed validatorAddress,
        uint256 indexed agentId,
        string requestURI,
        bytes32 indexed requestHash
    );
    event ValidationResponse(
        address indexed validatorAddress,
        uint256 indexed agentId,
        bytes32 indexed requestHash,
        uint8 response,
        string responseURI,
        bytes32 responseHash,
        string tag
    );

    IdentityRegistry private immutable _IDENTITY;
    mapping(bytes32 requestHash => Validation) private _validations;

    constructor(IdentityRegistry identity) {
        _IDENTITY = identity;
    }

    function validationRequest(
        address validatorAddress,
        uint256 agentId,
        string calldata requestURI,
        bytes32 requestHash
    ) external {
        if (_IDENTITY.ownerOf(agentId) != msg.sender) revert NotTheOwner(msg.sender);
        if (_validations[requestHash].validator != address(0)) revert AlreadyRequested(requestHash);
        _validations[requestHash] = Validation(validatorAddress, agentId, 0, 0, "", block.timestamp);
        emit ValidationRequest(validatorAddress, agentId, requestURI, requestHash);
    }

    function validationResponse(
        bytes32 requestHash,
        uint8 response,
        string calldata responseURI,
        bytes32 responseHash,
        string calldata tag
    ) external {
        Validation storage asked = _validations[requestHash];
        if (asked.validator == address(0)) revert UnknownRequest(requestHash);
        if (asked.validator != msg.sender) revert NotTheValidator(msg.sender);
        if (response > 100) revert NotAPercentage(response);
        (asked.response, asked.responseHash, asked.tag, asked.lastUpdate) =
            (response, responseHash, tag, block.timestamp);
        emit ValidationResponse(msg.sender, asked.agentId, requestHash, response, responseURI, responseHash, tag);
    }

    function getIdentityRegistry() external view returns (address) {
        return address(_IDENTITY);
    }

    function getValidationStatus(bytes32 requestHash)
        external
        view
        returns (
            address validatorAddress,
            uint256 agentId,
            uint8 response,
            bytes32 responseHash,
            string memory tag,
            uint256 lastUpdate
        )
    {
        Validation storage asked = _validations[requestHash];
        if (asked.validator == address(0)) revert UnknownRequest(requestHash);
        return (
            asked.validator, asked.agentId, asked.response, asked.responseHash, asked.tag, asked.lastUpdate
        );
    }
}
