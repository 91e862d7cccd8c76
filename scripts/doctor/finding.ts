/** The doctor's finding about one component, with a remedy if it is wrong. */
export interface Finding {
  readonly level: "ok" | "note" | "fail";
  /** A variable or a component of the installation. */
  readonly subject: string;
  readonly text: string;
}

export const ok = (subject: string, text: string): Finding => ({ level: "ok", subject, text });
export const note = (subject: string, text: string): Finding => ({ level: "note", subject, text });
export const fail = (subject: string, text: string): Finding => ({ level: "fail", subject, text });

/** Returns the cause in one line, without the URL, which may contain a key. */
export function causeOf(error: unknown): string {
  const { cause, message, shortMessage, details, code } = error as Error & {
    readonly shortMessage?: string;
    readonly details?: string;
    readonly code?: string;
  };
  const inner = cause as NodeJS.ErrnoException | undefined;
  const known = inner?.code ?? code ?? details ?? shortMessage;
  // The message of `fetch` is only that it failed.
  const text = known ?? (message === "fetch failed" ? (inner?.message ?? message) : message);
  return (
    String(text)
      .split("\n")[0]
      ?.replace(/https?:\/\/\S+/g, "…") ?? ""
  );
}
