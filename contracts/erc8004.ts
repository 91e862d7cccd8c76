import { type Address, parseAbi } from "viem";

// The parts of ERC-8004's registries that the service uses, as deployed on Base (erc-8004-contracts 2.0.0).

export const identityRegistryAbi = parseAbi(["function getAgentWallet(uint256 agentId) view returns (address)"]);

export const reputationRegistryAbi = parseAbi([
  "function getIdentityRegistry() view returns (address)",
  "function giveFeedback(uint256 agentId, int128 value, uint8 valueDecimals, string tag1, string tag2, string endpoint, string feedbackURI, bytes32 feedbackHash)",
  "function revokeFeedback(uint256 agentId, uint64 feedbackIndex)",
  "event NewFeedback(uint256 indexed agentId, address indexed clientAddress, uint64 feedbackIndex, int128 value, uint8 valueDecimals, string indexed indexedTag1, string tag1, string tag2, string endpoint, string feedbackURI, bytes32 feedbackHash)",
  "event FeedbackRevoked(uint256 indexed agentId, address indexed clientAddress, uint64 indexed feedbackIndex)",
]);

export const validationRegistryAbi = parseAbi([
  "function getIdentityRegistry() view returns (address)",
  "function validationResponse(bytes32 requestHash, uint8 response, string responseURI, bytes32 responseHash, string tag)",
  "function getValidationStatus(bytes32 requestHash) view returns (address validatorAddress, uint256 agentId, uint8 response, bytes32 responseHash, string tag, uint256 lastUpdate)",
  "event ValidationResponse(address indexed validatorAddress, uint256 indexed agentId, bytes32 indexed requestHash, uint8 response, string responseURI, bytes32 responseHash, string tag)",
]);

/** The registries on Base. ERC-8004 lists no registry of validations there. */
export const ERC8004: { readonly identity: Address; readonly reputation: Address } = {
  identity: "0x8004A169FB4a3325136EB29fA0ceB6D2e539a432",
  reputation: "0x8004BAa17C55a88189AE136b182e5fdA19dE9b63",
};
