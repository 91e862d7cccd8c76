/** A size and a root of the log that are, or are about to be, on the chain. */
export interface Anchor {
  readonly size: number;
  readonly root: Uint8Array;
  /** `sending` until a block has it, `final` once that block is. `failed`: the chain refuses it, for good. */
  readonly state: AnchorState;
  readonly transaction: `0x${string}` | null;
  readonly block: number | null;
  readonly at: Date;
}

export type AnchorState = "sending" | "mined" | "final" | "failed";

export interface Progress {
  readonly state: AnchorState;
  readonly transaction: `0x${string}` | null;
  readonly block: number | null;
}

/** Which anchors were made, shared by all processes. */
export interface AnchorStore {
  /** One that is not final yet; null if there is none. */
  open(generation: number): Promise<Anchor | null>;
  /** Begins one, if none is open, the last one is old enough, and the log has grown since. */
  begin(generation: number, head: { readonly size: number; readonly root: Uint8Array }, every: number): Promise<void>;
  progress(generation: number, size: number, progress: Progress): Promise<void>;
  newest(generation: number): Promise<Anchor | null>;
}

/** The contract that keeps anchors, written to by one account. */
export interface AnchorChain {
  /** Carries an anchor as far as it goes: what was sent for it before is not sent a second time. */
  carry(origin: string, anchor: Anchor): Promise<Progress>;
  /** The newest one of this account; null if there is none. Rejects while the chain does not answer. */
  newest(origin: string): Promise<{ readonly size: number; readonly root: Uint8Array; readonly block: number } | null>;
}
