// Written by `npm run docs`: the action also works without the folders of the other packages.

export const CAPABILITIES = [
  "can_pay",
  "scam_resistance",
  "recipient_awareness",
  "full_suite",
  "retry_safety",
] as const;
export const SINGLE_PRODUCTS = ["basic", "suite"] as const;

export type Capability = (typeof CAPABILITIES)[number];
export type SingleProduct = (typeof SINGLE_PRODUCTS)[number];
