// Checks the environment of an installation: `npm run doctor`, and `npm run doctor -- --running` once it is started.
import { parseConfig } from "../api/platform/config/config.ts";
import { NETWORKS } from "../api/platform/networks.ts";
import { inspectAccounts } from "./doctor/accounts.ts";
import { inspectDatabase } from "./doctor/database.ts";
import { type Finding, fail } from "./doctor/finding.ts";
import { inspectNodes } from "./doctor/nodes.ts";
import { inspectGithub, inspectService, inspectWitnesses } from "./doctor/web.ts";

const isStarted = process.argv.includes("--running");
const LABELS = { ok: "ok  ", note: "note", fail: "FAIL" } as const;

async function inspect(): Promise<readonly Finding[]> {
  const config = parseConfig(process.env);
  if ("problem" in config) return config.problem.split("\n").map((line) => fail("environment", line));
  const nodes = Object.values(NETWORKS).map(({ id }) => inspectNodes(id, config));
  const others = [inspectAccounts, inspectGithub, inspectWitnesses].map((part) => part(config));
  const service = inspectService(config, isStarted);
  return (await Promise.all([inspectDatabase(config), ...nodes, ...others, service])).flat();
}

const findings = await inspect();
for (const { level, subject, text } of findings) console.log(`${LABELS[level]} ${subject}: ${text}`);
const failures = findings.filter(({ level }) => level === "fail").length;
console.log(failures === 0 ? "\nNo problems found." : `\n${failures} to fix. Each FAIL line has the remedy.`);
// Pools and sockets of unresponsive components must not keep the process running.
process.exit(failures === 0 ? 0 : 1);
