import { globSync, readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { parse } from "yaml";
import { parseConfig } from "../../api/platform/config/config.ts";
import { completeEnvironment } from "../support/service/environment.ts";

interface ComposeService {
  readonly image: string;
  readonly environment?: Readonly<Record<string, string>>;
  readonly secrets?: readonly string[];
  readonly stop_grace_period?: string;
  readonly read_only?: boolean;
}

const compose = parse(readFileSync("deploy/compose.yaml", "utf8"), { merge: true }) as {
  readonly services: Readonly<Record<string, ComposeService>>;
  readonly secrets: Readonly<Record<string, { readonly file: string }>>;
};
const UNITS = globSync("deploy/systemd/*.service").sort();
const unit = (file: string): string => readFileSync(file, "utf8");

const config = parseConfig({ ...completeEnvironment("A".repeat(43)), BASE_URL: "https://trust.example" });
if ("problem" in config) throw new Error(config.problem);
/** How long the API may take to stop. */
const STOP_SECONDS = config.drainSeconds + config.stopWithinSeconds;

/** The variables for the files with the API's secrets: every required variable except node URLs. */
const SECRETS = [
  "DATABASE_URL_FILE",
  "FACILITATOR_PRIVATE_KEY_FILE",
  "ARBITER_PRIVATE_KEY_FILE",
  "SIGNING_KEY_FILE",
  "SEALING_KEY_FILE",
  "DECOY_SEED_FILE",
];

describe("deploy/compose.yaml", () => {
  const ours = Object.entries(compose.services).filter(([, { image }]) => image.startsWith("agent-payment-trust:"));

  test("One image runs migrations, two API processes, and the indexer, each on a read-only root", () => {
    expect(ours.map(([name]) => name)).toEqual(["migrate", "api-1", "api-2", "indexer"]);
    expect(new Set(ours.map(([, { image }]) => image)).size).toBe(1);
    expect(ours.filter(([, service]) => service.read_only !== true)).toEqual([]);
    expect(Object.keys(compose.services)).toEqual(expect.arrayContaining(["postgres", "nginx", "prometheus"]));
  });

  test("Each program gets exactly the files of its secrets", () => {
    expect(Object.keys(compose.services["api-1"]?.environment ?? {}).filter((name) => name.endsWith("_FILE"))).toEqual(
      SECRETS,
    );
    for (const [name, { environment = {}, secrets = [] }] of ours) {
      const files = Object.entries(environment).filter(([variable]) => variable.endsWith("_FILE"));
      expect(
        files.map(([, path]) => path),
        name,
      ).toEqual(secrets.map((secret) => `/run/secrets/${secret}`));
    }
    const used = new Set(Object.values(compose.services).flatMap(({ secrets = [] }) => secrets));
    expect([...used].sort()).toEqual(Object.keys(compose.secrets).sort());
    for (const [name, { file }] of Object.entries(compose.secrets)) expect(file).toBe(`secrets/${name}`);
  });

  test("The stop grace period is longer than an API process takes to stop", () => {
    const [, seconds = "0"] = /^(\d+)s$/.exec(compose.services["api-1"]?.stop_grace_period ?? "") ?? [];
    expect(Number(seconds)).toBeGreaterThan(STOP_SECONDS);
  });
});

describe("systemd units", () => {
  test("There are units for migrations, the API, and the indexer", () => {
    expect(UNITS.map((file) => file.split("/").at(-1))).toEqual([
      "trust-api@.service",
      "trust-indexer.service",
      "trust-migrate.service",
    ]);
  });

  test.each(UNITS)("%s passes each secret as a credential", (file) => {
    const text = unit(file);
    const handed = [...text.matchAll(/^LoadCredential=([\w-]+):\/etc\/trust\/credentials\/[\w-]+$/gm)].map(
      ([, id]) => id,
    );
    const read = [...text.matchAll(/^Environment=[A-Z_]+_FILE=%d\/([\w-]+)$/gm)].map(([, id]) => id);
    expect(read.length).toBeGreaterThan(0);
    expect(read).toEqual(handed);
  });

  test("The API's unit has every required secret and enough time to stop", () => {
    const text = unit("deploy/systemd/trust-api@.service");
    expect([...text.matchAll(/^Environment=([A-Z_]+_FILE)=/gm)].map(([, name]) => name)).toEqual(SECRETS);
    const [, seconds = "0"] = /^TimeoutStopSec=(\d+)$/m.exec(text) ?? [];
    expect(Number(seconds)).toBeGreaterThan(STOP_SECONDS);
  });
});

test("The workflow runs .ci/run with the full history, because tests compare with tags", () => {
  const { jobs } = parse(readFileSync(".github/workflows/ci.yml", "utf8"));
  expect(jobs.checks.steps.map(({ run }: { run?: string }) => run).filter(Boolean)).toEqual([".ci/run"]);
  expect(jobs.checks.steps[0].with["fetch-depth"]).toBe(0);
});
