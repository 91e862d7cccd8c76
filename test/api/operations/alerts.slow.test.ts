import { spawnSync } from "node:child_process";
import { cpSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { startGuarded } from "../../../scripts/embedded/guarded-process.ts";
import { freePort } from "../../../scripts/embedded/ports.ts";
import { folderForFile, forFile } from "../../support/for-file.ts";
import { startApiStage } from "../../support/service/api-process.ts";
import { unpackDebian } from "../../support/service/debian.ts";

/** The rules in a real Prometheus from Debian's package. */

const DEPLOY = fileURLToPath(new URL("../../../deploy/", import.meta.url));
const folder = await folderForFile("trust-alerts-");
const missing = unpackDebian(join(folder, "debian"), ["prometheus"]);
if (missing !== null) console.log(`Prometheus is skipped: ${missing}`);
const program = (name: string) => join(folder, "debian/usr/bin", name);

test.skipIf(missing !== null)("The rules are valid and pass their tests", () => {
  const promtool = (...args: readonly string[]) =>
    spawnSync(program("promtool"), args, { encoding: "utf8", cwd: DEPLOY });
  const checked = promtool("check", "rules", "alerts.yaml");
  expect([checked.status, checked.stdout]).toEqual([0, expect.stringMatching(/SUCCESS: 2\d rules found/)]);
  const tested = promtool("test", "rules", "alerts.test.yaml");
  expect([tested.status, tested.stdout, tested.stderr]).toEqual([0, expect.stringContaining("SUCCESS"), ""]);
});

test.skipIf(missing !== null)(
  "Prometheus alerts on a paused USDC and on a missing index of a scraped process",
  async () => {
    const { chain, start } = await forFile(startApiStage());
    const [metricsPort, port] = [await freePort(), await freePort()];
    await start({ url: chain.rpcUrl }, { METRICS_PORT: String(metricsPort) });
    cpSync(join(DEPLOY, "alerts.yaml"), join(folder, "alerts.yaml"));
    const config = {
      global: { scrape_interval: "1s", evaluation_interval: "1s" },
      rule_files: ["alerts.yaml"],
      scrape_configs: [{ job_name: "trust", static_configs: [{ targets: [`127.0.0.1:${metricsPort}`] }] }],
    };
    writeFileSync(join(folder, "prometheus.yml"), JSON.stringify(config));
    const flags = [
      ...["--config.file", join(folder, "prometheus.yml"), "--storage.tsdb.path", join(folder, "data")],
      ...["--web.listen-address", `127.0.0.1:${port}`],
    ];
    await forFile(startGuarded({ command: program("prometheus"), args: flags }));
    const alerts = async (): Promise<Readonly<Record<string, string>>> => {
      const answer = await fetch(`http://127.0.0.1:${port}/api/v1/alerts`).catch(() => null);
      if (answer === null || !answer.ok) return {};
      const { data } = (await answer.json()) as {
        data: { alerts: readonly { labels: { alertname: string }; state: string }[] };
      };
      return Object.fromEntries(data.alerts.map(({ labels, state }) => [labels.alertname, state]));
    };
    const LONG = { timeout: 60_000, interval: 500 };
    // This stage has no index, so that alert is pending for five minutes, and no other alert exists.
    await expect.poll(alerts, LONG).toEqual({ IndexBehind: "pending", ServiceDegraded: "pending" });
    await chain.pause();
    await expect.poll(alerts, LONG).toMatchObject({ UsdcUnavailable: "firing" });
    await chain.unpause();
    await expect.poll(alerts, LONG).toEqual({ IndexBehind: "pending", ServiceDegraded: "pending" });
  },
);
