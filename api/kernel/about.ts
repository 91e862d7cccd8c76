/** The service in one sentence, for documents that have room for only one. */
export const ABOUT =
  "The trust layer for agents that pay: certificates of how an agent paid over x402, risk scores of wallets, an escrow, and signed verdicts on deliveries, all from facts observed on the chain or by the service itself.";

export const VERSION = "1.0.0";
