/** What the doctor says about one part: fine, worth knowing, or wrong, with what to do. */
export interface Finding {
  readonly level: "ok" | "note" | "fail";
  /** A variable or a part of the installation. */
  readonly subject: string;
  readonly text: string;
}

export const ok = (subject: string, text: string): Finding => ({ level: "ok", subject, text });
export const note = (subject: string, text: string): Finding => ({ level: "note", subject, text });
export const fail = (subject: string, text: string): Finding => ({ level: "fail", subject, text });

/** In one line, without the address that was called: it may hold a key. */
export function causeOf(error: unknown): string {
  const { cause, message, shortMessage, details, code } = error as Error & {
    readonly shortMessage?: string;
    readonly details?: string;
    readonly code?: string;
  };
  const inner = cause as NodeJS.ErrnoException | undefined;
  const known = inner?.code ?? code ?? details ?? shortMessage;
  // `fetch` says no more than that it failed.
  const text = known ?? (message === "fetch failed" ? (inner?.message ?? message) : message);
  return (
    String(text)
      .split("\n")[0]
      ?.replace(/https?:\/\/\S+/g, "…") ?? ""
  );
}
