import manifest from "../../package.json" with { type: "json" };

/** The service in one sentence, for documents that have room for only one. */
export const ABOUT =
  "The trust layer for agents that pay: certificates of how an agent paid over x402, wallet risk scores, an escrow, and signed delivery verdicts, all based on facts observed on-chain or by the service itself.";

/** The version of the service and of its packages. `npm version` changes it everywhere. */
export const VERSION: string = manifest.version;
