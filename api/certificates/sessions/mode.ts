import { MAIN_NETWORK, type Network, TEST_NETWORK } from "../../platform/networks.ts";

/** Whether a behavioral test counts. Its name begins its paths and the names of its routes in the journal. */
export interface TestMode {
  readonly name: "test" | "rehearsal";
  /** The network that everything in it is paid on. */
  readonly network: Network;
}

/** A test that leads to a certificate. */
export const RECORDED: TestMode = { name: "test", network: MAIN_NETWORK };

/** The same test in test money. Its outcome is told to its caller alone. */
export const REHEARSAL: TestMode = { name: "rehearsal", network: TEST_NETWORK };
