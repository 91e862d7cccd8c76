/** The state of the transparency log, its witnesses, and its anchors. */
export interface LogFacts {
  /** The state of this process: `integrating`, or the reason that it is not. */
  readonly state: "starting" | "checking" | "integrating" | "refused";
  readonly problem: string | null;
  /** The size of the newest checkpoint, 0 before the first. */
  readonly size: number;
  readonly quorum: number;
  /** The newest checkpoint that enough witnesses have cosigned, and when it reached the quorum, or null. */
  readonly witnessed: { readonly size: number; readonly at: Date } | null;
  readonly witnesses: readonly {
    readonly name: string;
    readonly size: number | null;
    readonly cosignedAt: Date | null;
    readonly error: { readonly text: string; readonly at: Date } | null;
    /** The reason that the log signs nothing until this witness cosigns, or null. */
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
