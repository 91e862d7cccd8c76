// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

/// @title IdentityRegistry
/// @notice The parts of ERC-8004's registry of agents that the service uses, written from the standard's text: an agent
/// has an owner and a wallet, and a new owner starts without a wallet. For development and tests only.
contract IdentityRegistry {
    error NotTheOwner(address got);
    error UnknownAgent(uint256 agentId);

    event Registered(uint256 indexed agentId, string agentURI, address indexed owner);
    event MetadataSet(
        uint256 indexed agentId,
        string indexed indexedMetadataKey,
        string metadataKey,
        bytes metadataValue
    );
    event Transfer(address indexed from, address indexed to, uint256 indexed tokenId);

    address[] private _owners;
    mapping(uint256 agentId => address) private _wallets;

    function register() external returns (uint256 agentId) {
        agentId = _owners.length;
        _owners.push(msg.sender);
        emit Transfer(address(0), msg.sender, agentId);
        emit Registered(agentId, "", msg.sender);
        _setWallet(agentId, msg.sender);
    }

    function transferFrom(address from, address to, uint256 agentId) external {
        if (ownerOf(agentId) != msg.sender || from != msg.sender) revert NotTheOwner(msg.sender);
        _owners[agentId] = to;
        emit Transfer(from, to, agentId);
        _setWallet(agentId, address(0));
    }

    function getAgentWallet(uint256 agentId) external view returns (address) {
        return _wallets[agentId];
    }

    function isAuthorizedOrOwner(address spender, uint256 agentId) external view returns (bool) {
        return ownerOf(agentId) == spender;
    }

    function ownerOf(uint256 agentId) public view returns (address) {
        if (agentId >= _owners.length) revert UnknownAgent(agentId);
        return _owners[agentId];
    }

    function _setWallet(uint256 agentId, address wallet) private {
        _wallets[agentId] = wallet;
        bytes memory value = wallet == address(0) ? bytes("") : abi.encodePacked(wallet);
        emit MetadataSet(agentId, "agentWallet", "agentWallet", value);
    }
}
