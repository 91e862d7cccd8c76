import { randomUUID } from "node:crypto";
import { appendFile } from "node:fs/promises";

/** The result of a run: outputs for later steps, and a summary in Markdown. */
export interface Report {
  readonly outputs: Readonly<Record<string, string>>;
  readonly summary: string;
  /** The reason why the step fails; null if it succeeds. */
  readonly failure: string | null;
}

/** Writes to the files that GitHub names, if any. The random delimiter keeps a value from ending its own block. */
export async function write(report: Report, env: Readonly<Record<string, string | undefined>>): Promise<void> {
  const end = randomUUID();
  const outputs = Object.entries(report.outputs).map(([name, value]) => `${name}<<${end}\n${value}\n${end}\n`);
  if (env.GITHUB_OUTPUT) await appendFile(env.GITHUB_OUTPUT, outputs.join(""));
  if (env.GITHUB_STEP_SUMMARY) await appendFile(env.GITHUB_STEP_SUMMARY, `${report.summary}\n`);
}

const ESCAPES: Readonly<Record<string, string>> = { "%": "%25", "\r": "%0D", "\n": "%0A" };

/** Returns a line that GitHub displays as an error of the step. */
export const errorLine = (message: string): string =>
  `::error::${message.replace(/[%\r\n]/g, (one) => ESCAPES[one] ?? "")}`;

/**
 * Tells GitHub to mask a key, because it masks its own secrets in a log, but not a key that an earlier step created.
 * Does nothing elsewhere.
 */
export function mask(privateKey: string, env: Readonly<Record<string, string | undefined>>): void {
  if (env.GITHUB_ACTIONS === "true") console.log(`::add-mask::${privateKey}\n::add-mask::${privateKey.slice(2)}`);
}
