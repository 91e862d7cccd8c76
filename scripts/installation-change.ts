import { parseArgs } from "node:util";
import { parseConfig } from "../api/platform/config/config.ts";
import { connect } from "../api/platform/db/connection.ts";
import { changeInstallation } from "../api/platform/db/installation.ts";

const USAGE = `Usage: npm run installation:change -- --reason "why the address, arbiter, origin, or key changed"

Records permanently that the installation of DATABASE_URL runs with the API's current environment from now on.`;

function readReason(): string | null {
  try {
    const { values } = parseArgs({ options: { reason: { type: "string" } } });
    return values.reason?.trim() || null;
  } catch {
    return null;
  }
}

async function main(): Promise<string | null> {
  const reason = readReason();
  if (reason === null) return USAGE;
  const config = parseConfig(process.env);
  if ("problem" in config) return config.problem;
  const pool = connect(config.databaseUrl, 1);
  try {
    const isRecorded = await changeInstallation(pool, config, reason);
    console.log(isRecorded ? "The change is recorded; restart the service." : "No change to record.");
    return null;
  } catch (error) {
    return `The change was not recorded: ${(error as Error).message}`;
  } finally {
    await pool.end();
  }
}

const problem = await main();
if (problem !== null) {
  console.error(problem);
  process.exitCode = 1;
}
