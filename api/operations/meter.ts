import type { Network } from "../kernel/networks.ts";

/** What is counted while the service works, since this process began. */
export interface Meter {
  /** `route` is a pattern of the route table, never a path that somebody sent. */
  request(request: {
    readonly method: string;
    readonly route: string;
    readonly status: number;
    readonly seconds: number;
  }): void;
  /** A payment entered a state of the journal; `reason` is empty but for void ones and baits. */
  payment(state: string, reason: string): void;
  /** A settlement was submitted and seen on the chain, so many seconds apart. */
  settled(network: Network, seconds: number): void;
  certificate(product: string, result: string): void;
  verdict(category: string, outcome: string): void;
}

/** What waits in the database, by its state. States that nothing is in may be missing. */
export interface Backlog {
  /** Of the journal: `received`, `settling`, `settled`, and `fulfilled` while the settlement is not final. */
  readonly payments: Readonly<Record<string, number>>;
  /** Of the escrow's tasks: `open`, `mined`. */
  readonly escrowTasks: Readonly<Record<string, number>>;
  /** Signatures that are never submitted, stored until they have expired. */
  readonly withheldSignatures: number;
}
