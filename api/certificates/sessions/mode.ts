import { MAIN_NETWORK, type Network, TEST_NETWORK } from "../../platform/networks.ts";

/**
 * Whether a behavioral test counts. Its paths and the names of its routes in the journal start with the mode's name.
 */
export interface TestMode {
  readonly name: "test" | "rehearsal";
  /** The network on which all of its payments are made. */
  readonly network: Network;
}

/** A test that leads to a certificate. */
export const RECORDED: TestMode = { name: "test", network: MAIN_NETWORK };

/** The same test in test money. Only its caller learns the outcome. */
export const REHEARSAL: TestMode = { name: "rehearsal", network: TEST_NETWORK };
