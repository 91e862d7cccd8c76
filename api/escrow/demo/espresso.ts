/** Atomic USDC. */
export const DEMO_PRICE = 100_000n;
export const DEMO_PATH = "/escrow/demo";
export const DEMO_DESCRIPTION = "An escrow-protected espresso: held, served, evaluated and released, all on-chain.";

const CUP = ["   ( (", "    ) )", "  ........", "  |      |]", "  \\      /", "   `----'"].join("\n");

/** The espresso, always the same for the same payment. */
export const espresso = (payment: string) => ({ item: "espresso", order: payment.slice(2, 10), art: CUP });
