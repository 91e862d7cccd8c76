import { homedir } from "node:os";
import { isAbsolute, join } from "node:path";

const NAME = "agent-payment-trust-mcp";

/** Where this program keeps what must survive it: XDG Base Directory Specification; on Windows the local app data. */
export function stateFolder(
  { XDG_STATE_HOME: state = "", LOCALAPPDATA: local = "" }: Readonly<Record<string, string | undefined>>,
  platform: NodeJS.Platform,
): string {
  // The specification wants relative paths ignored.
  if (isAbsolute(state)) return join(state, NAME);
  return platform === "win32" && local !== "" ? join(local, NAME) : join(homedir(), ".local", "state", NAME);
}
