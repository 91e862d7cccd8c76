import { execFile, spawnSync } from "node:child_process";
import { globSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { freePort } from "../../scripts/embedded/ports.ts";
import { startPostgres, withClient } from "../../scripts/embedded/postgres.ts";
import { migrate } from "../../scripts/migrate.ts";
import { folderForFile, forFile } from "../support/for-file.ts";
import { unpackDebian } from "../support/service/debian.ts";

// The programs that the files in deploy/ are for must accept them.

const run = promisify(execFile);
const folder = await folderForFile("trust-deploy-");
const file = (name: string) => join(folder, name);
const exists = (program: string): boolean => spawnSync(program, ["--version"]).error === undefined;
/** Runs a Go program from the Go module proxy. */
const goProgram = (module: string, ...args: readonly string[]) =>
  run("go", ["run", module, ...args], { timeout: 280_000, cwd: folder });

test("The command systemd-analyze accepts the units and rates their exposure as low", async ({ skip }) => {
  if (!exists("systemd-analyze")) return skip("there is no systemd-analyze");
  const units = globSync("deploy/systemd/*.service").map((path) => {
    // This checkout takes the place of the installed one.
    writeFileSync(file(basename(path)), readFileSync(path, "utf8").replaceAll("/opt/trust", process.cwd()));
    return file(basename(path));
  });
  expect(units.length).toBe(3);
  const { stderr, stdout } = await run("systemd-analyze", ["verify", "--man=no", ...units]);
  expect(stderr + stdout).toBe("");
  const instances = units.map((path) => path.replace("@.service", "@4020.service"));
  for (const [index, path] of units.entries()) writeFileSync(instances[index] ?? "", readFileSync(path));
  const security = ["security", "--offline=true", "--threshold=20", "--no-pager", ...instances];
  await expect(run("systemd-analyze", security)).resolves.toBeDefined();
});

test("Compose's own parser accepts compose.yaml", async ({ skip }) => {
  if (spawnSync("go", ["version"]).error) return skip("there is no Go");
  const text = readFileSync("deploy/compose.yaml", "utf8");
  writeFileSync(file("compose.yaml"), text.replaceAll(/\$\{TRUST_TAG:\?[^}]*\}/g, "1.0.0"));
  writeFileSync(file("trust.env"), "");
  const { stdout } = await goProgram(
    "github.com/compose-spec/compose-go/v2/cmd@v2.16.2",
    "--format=json",
    "compose.yaml",
  );
  const { services } = JSON.parse(stdout);
  expect(services["api-2"]).toMatchObject({ image: "agent-payment-trust:1.0.0", read_only: true, cap_drop: ["ALL"] });
  expect(services["api-2"].healthcheck.test).toEqual(["CMD", "node", "--eval", expect.stringContaining("/ready")]);
}, 300_000);

test("The workflow has no actionlint findings", async ({ skip }) => {
  if (spawnSync("go", ["version"]).error) return skip("there is no Go");
  const workflow = join(process.cwd(), ".github/workflows/ci.yml");
  const { stdout } = await goProgram(
    "github.com/rhysd/actionlint/cmd/actionlint@v1.7.7",
    "-shellcheck=",
    "-pyflakes=",
    workflow,
  );
  expect(stdout).toBe("");
}, 300_000);

test("Prometheus' promtool accepts the configuration", async ({ skip }) => {
  const missing = unpackDebian(file("prometheus"), ["prometheus"]);
  if (missing !== null) return skip(missing);
  const promtool = join(file("prometheus"), "usr/bin/promtool");
  const { stdout } = await run(promtool, ["check", "config", "deploy/prometheus.yaml"]);
  expect(stdout).toMatch(/SUCCESS: 1 rule files found.*SUCCESS: .*is valid.*SUCCESS: 2\d rules found/s);
});

test("create-roles.sh creates the roles to which migrations grant rights", async ({ skip }) => {
  if (!exists("psql")) return skip("there is no psql");
  mkdirSync(file("secrets"));
  mkdirSync(file("postgres"));
  const postgres = await forFile(
    startPostgres({ directory: file("postgres"), port: await freePort(), settings: ["fsync=off"] }),
  );
  const owner = new URL(postgres.ownerUrl);
  for (const [name, role] of [
    ["api", "trust"],
    ["indexer", "trust_index"],
  ])
    writeFileSync(
      join(file("secrets"), `${name}-database-url`),
      `postgres://${role}:Secret4${name}@postgres:5432/trust\n`,
    );
  const env = {
    PATH: process.env.PATH,
    ...{ PGHOST: owner.hostname, PGPORT: owner.port, PGPASSWORD: owner.password },
    ...{ POSTGRES_USER: owner.username, POSTGRES_DB: "trust", SECRETS: file("secrets") },
  };
  // The embedded PostgreSQL already has a role with this name.
  await withClient(postgres.ownerUrl, (client) => client.query("DROP ROLE trust_index"));
  await run("deploy/postgres/create-roles.sh", [], { env });
  await migrate(postgres.ownerUrl);
  const as = (role: string, password: string) => `postgres://${role}:${password}@${owner.host}/trust`;
  await withClient(as("trust", "Secret4api"), async (client) => {
    expect((await client.query("SELECT count(*) FROM payment")).rows).toEqual([{ count: "0" }]);
    await expect(client.query("DELETE FROM certificate")).rejects.toThrow(/permission denied/);
  });
  await withClient(as("trust_index", "Secret4indexer"), async (client) => {
    await expect(client.query("SELECT FROM certificate")).rejects.toThrow(/permission denied/);
  });
}, 120_000);
