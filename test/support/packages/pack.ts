import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { withClient } from "../../../scripts/embedded/postgres.ts";
import { serverUrl } from "../service/database.ts";

const PACKAGES = fileURLToPath(new URL("../../../packages/", import.meta.url));
const call = promisify(execFile);

/**
 * Puts the tarball of one of our packages into a folder, as npm publishes it. Packing builds in the package's own folder: files
 * that want the same package wait for each other.
 */
export const packInto = (home: string, folder: "escrow" | "mcp" | "verifier"): Promise<void> =>
  withClient(serverUrl(), async (client) => {
    // Whoever holds it is gone with its connection.
    await client.query("select pg_advisory_lock(hashtext($1))", [folder]);
    await call("npm", ["pack", "--pack-destination", home, `${PACKAGES}${folder}`], { cwd: home });
  });
