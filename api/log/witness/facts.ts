/** What is known of the transparency log, its witnesses and its anchors. */
export interface LogFacts {
  /** Of the answering process: `integrating`, or why it does not. */
  readonly state: "starting" | "checking" | "integrating" | "refused";
  readonly problem: string | null;
  /** Of the newest checkpoint; 0 before the first. */
  readonly size: number;
  readonly quorum: number;
  /** The newest checkpoint that enough witnesses have cosigned, and when the last of these did; null if there is none. */
  readonly witnessed: { readonly size: number; readonly at: Date } | null;
  readonly witnesses: readonly {
    readonly name: string;
    readonly size: number | null;
    readonly cosignedAt: Date | null;
    readonly error: { readonly text: string; readonly at: Date } | null;
    /** Why the log is not signed as long as this witness does not cosign. */
    readonly danger: string | null;
  }[];
  readonly anchor: {
    readonly size: number;
    readonly state: string;
    readonly transaction: string | null;
    readonly block: number | null;
    readonly at: Date;
  } | null;
}
