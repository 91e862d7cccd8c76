import { vi } from "vitest";
import { InputError } from "../../../packages/verifier/src/refusal.ts";

/** A command of the verifier in this process: its exit code, and what it printed or was refused for. */
export async function saidBy(
  command: () => Promise<number>,
): Promise<{ readonly code: number; readonly text: string }> {
  const said = vi.spyOn(console, "log").mockReturnValue();
  try {
    const code = await command();
    return { code, text: said.mock.calls.map(([line]) => `${line}\n`).join("") };
  } catch (error) {
    if (!(error instanceof InputError)) throw error;
    return { code: 2, text: error.message };
  } finally {
    said.mockRestore();
  }
}
