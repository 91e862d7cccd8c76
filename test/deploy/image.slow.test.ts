import { execFile, spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { chmodSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { beforeAll, expect, test } from "vitest";
import { PACKAGES, tarballName, WHEEL } from "../../api/platform/packages.ts";
import { TARBALLS } from "../../api/site/packages/tarballs.ts";
import manifest from "../../package.json" with { type: "json" };
import { type GuardedProcess, startGuarded } from "../../scripts/embedded/guarded-process.ts";
import { freePort } from "../../scripts/embedded/ports.ts";
import { type BuiltImage, buildImage, packImage, readCommit } from "../../scripts/image.ts";
import { buildPackages, buildWheel } from "../../scripts/packages.ts";
import { startTestChain } from "../support/chain/chain.ts";
import { folderForFile, forFile } from "../support/for-file.ts";
import { createDatabase } from "../support/service/database.ts";
import { librariesIn, unpackDebian } from "../support/service/debian.ts";
import { ARBITER_KEY, PAY_TO } from "../support/service/environment.ts";
import { waitUntil } from "../support/wait-until.ts";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));

/** Independent programs for OCI images: umoci unpacks one according to the specification, and runc runs it. */
interface OciPrograms {
  readonly umoci: string;
  readonly runc: string;
  readonly skopeo: string;
  readonly env: { readonly LD_LIBRARY_PATH: string; readonly PATH: string };
}

/** The programs from Debian. A string gives the reason why they are missing or cannot run containers here. */
function unpackOciPrograms(folder: string): OciPrograms | string {
  if (process.getuid?.() !== 0) return "only root can start a container here";
  const { stdout: listed, error } = spawnSync("apt-cache", ["depends", "--important", "runc", "skopeo"], {
    encoding: "utf8",
  });
  if (error) return "there is no apt-cache";
  const needed = [...listed.matchAll(/^ {2}Depends: (lib(?!c6)\S+)$/gm)].map(([, name = ""]) => name);
  const missing = unpackDebian(folder, ["runc", "umoci", "skopeo", ...new Set(needed)]);
  if (missing !== null) return missing;
  const program = (path: string) => join(folder, path);
  const libraries = librariesIn(folder);
  const programs = {
    umoci: program("usr/bin/umoci"),
    runc: program("usr/sbin/runc"),
    skopeo: program("usr/bin/skopeo"),
  };
  const env = { LD_LIBRARY_PATH: libraries, PATH: process.env.PATH ?? "" };
  for (const command of Object.values(programs)) {
    const { status, stderr } = spawnSync(command, ["--version"], { env, encoding: "utf8" });
    if (status !== 0) return `${command} does not run: ${stderr}`;
  }
  return { ...programs, env };
}

interface RunPlan {
  /** The bundle that umoci has unpacked. */
  readonly bundle: string;
  /** Unique on this machine. */
  readonly name: string;
  /** Replaces the image's command. */
  readonly args?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
}

interface Container {
  readonly process: GuardedProcess;
  /** Reads a file in `/proc/PID` of the container's program. */
  readonly proc: (part: string) => string;
  readonly stop: () => Promise<void>;
}

/** Runs an unpacked image on a read-only root, as the user that it names, in the machine's network. */
async function runContainer({ runc, env }: OciPrograms, plan: RunPlan): Promise<Container> {
  const { bundle, name, args, env: settings = {} } = plan;
  const config = JSON.parse(readFileSync(join(bundle, "config.json"), "utf8"));
  config.root = { path: join(bundle, "rootfs"), readonly: true };
  config.process.terminal = false;
  config.process.noNewPrivileges = true;
  config.process.capabilities = {};
  const [entry] = config.process.args;
  if (args !== undefined) config.process.args = [entry, ...args];
  config.process.env.push(...Object.entries(settings).map(([key, value]) => `${key}=${value}`));
  config.linux.namespaces = config.linux.namespaces.filter(({ type }: { type: string }) => type !== "network");
  const own = join(bundle, name);
  mkdirSync(own);
  writeFileSync(join(own, "config.json"), JSON.stringify(config));
  const call = (...more: readonly string[]) => ["--root", join(bundle, "state"), ...more];
  const started = await startGuarded({ command: runc, args: call("run", "--bundle", own, name), env: { ...env } });
  const ask = (...more: readonly string[]) => spawnSync(runc, call(...more), { env, encoding: "utf8" });
  return {
    process: started,
    proc: (part) => readFileSync(`/proc/${JSON.parse(ask("state", name).stdout).pid}/${part}`, "utf8"),
    async stop() {
      if (started.running()) ask("kill", name, "TERM");
      await started.ended;
    },
  };
}

const run = promisify(execFile);
const folder = await folderForFile("trust-image-test-");
const bundle = join(folder, "bundle");
/** The image's files. */
const rootfs = join(bundle, "rootfs");
/** The service's folder in the image. */
const app = join(rootfs, "app");
const layout = join(folder, "layout");
const programs = unpackOciPrograms(join(folder, "programs"));

const commit = await readCommit();
let image: BuiltImage;

beforeAll(async () => {
  image = await buildImage(join(folder, "one"));
  for (const path of [layout, bundle]) mkdirSync(path);
  await run("tar", ["-xf", image.archive, "-C", layout]);
  await unpackLayers();
  // As another builder would have them.
  await run("chmod", ["-R", "a-w", app]);
  if (process.getuid?.() === 0) await run("chown", ["-hR", "1000:1000", app]);
  await run("find", [rootfs, "-exec", "touch", "--no-dereference", "--date=2001-01-01", "{}", "+"]);
  chmodSync(folder, 0o755);
}, 300_000);

async function unpackLayers(): Promise<void> {
  if (typeof programs !== "string") {
    const { umoci, env } = programs;
    const from = ["--image", `${layout}:${image.tag}`];
    await run(umoci, ["raw", "unpack", ...from, rootfs], { env });
    await run(umoci, ["raw", "runtime-config", ...from, "--rootfs", rootfs, join(bundle, "config.json")], { env });
    return;
  }
  const blob = (digest: string) => join(layout, "blobs", digest.replace(":", "/"));
  const { layers } = JSON.parse(readFileSync(blob(image.digest), "utf8"));
  mkdirSync(rootfs);
  for (const { digest } of layers) await run("tar", ["-xzf", blob(digest), "-p", "-C", rootfs, "--no-same-owner"]);
}

const sha256 = (file: string) => createHash("sha256").update(readFileSync(file)).digest("hex");

test("Packed in another folder, at another time, and by another user, the image has the same bytes", async () => {
  const [work, into] = [join(folder, "work"), join(folder, "two")];
  mkdirSync(work);
  const second = await packImage({ rootfs, commit, work, into });
  expect([second.digest, second.tag]).toEqual([image.digest, image.tag]);
  expect(sha256(second.archive)).toBe(sha256(image.archive));
  expect(sha256(second.sbom)).toBe(sha256(image.sbom));
}, 300_000);

test("The image's packages have the same bytes as those that were built from the same sources in another folder", async ({
  skip,
}) => {
  await buildPackages();
  await buildWheel();
  const text = (home: string, name: string) => readFileSync(join(home, name), "utf8");
  const served = join(app, relative(ROOT, TARBALLS));
  for (const name of ["built-from", "wheel-built-from"])
    if (text(served, name) !== text(TARBALLS, name)) return skip("packages/ has uncommitted changes");
  for (const name of [...PACKAGES.map(tarballName), WHEEL])
    expect(sha256(join(served, name)), name).toBe(sha256(join(TARBALLS, name)));
});

test("The tag is the version, followed by the commit unless the commit is that release", () => {
  expect(image.tag).toMatch(new RegExp(`^${manifest.version.replaceAll(".", "\\.")}(-[0-9a-f]{12})?$`));
});

test("The bill of materials lists the runtime dependencies with versions and hashes, and no development tools", () => {
  const bill = JSON.parse(readFileSync(image.sbom, "utf8"));
  expect(bill).toMatchObject({
    bomFormat: "CycloneDX",
    // The commit's time, so that a later build has the same bytes.
    metadata: { timestamp: new Date(commit.time * 1_000).toISOString(), component: { version: manifest.version } },
  });
  expect(bill.serialNumber).toBeUndefined();
  const purls: string[] = bill.components.map(({ purl }: { purl: string }) => purl);
  for (const [name, version] of Object.entries(manifest.dependencies))
    expect(purls).toContain(`pkg:npm/${name.replace("@", "%40")}@${version}`);
  expect(purls.filter((purl) => /^pkg:deb\/debian\/libc6@[\w.%+-]+\?arch=/.test(purl)).length).toBe(1);
  expect(purls.filter((purl) => purl.startsWith("pkg:npm/vitest@"))).toEqual([]);
  for (const { purl, hashes } of bill.components)
    if (purl.startsWith("pkg:deb"))
      expect(hashes).toEqual([{ alg: "SHA-256", content: expect.stringMatching(/^\w{64}$/) }]);
});

/** Each program names a missing setting or prints its usage, which shows that all of its imports are present. */
test.each([
  ["index-fetch", "Usage: npm run index:fetch"],
  ["index-preload", "Usage: npm run index:preload"],
  ["index-drop", "DATABASE_URL is missing"],
  ["reconcile", "Nothing is running in"],
  ["witness", "WITNESS_NAME is missing"],
  ["keys", "Usage: npm run keys"],
  ["doctor", "FAIL environment: DATABASE_URL is missing"],
  ["smoke", "Usage: npm run smoke"],
  ["installation-change", "Usage: npm run installation:change"],
  ["arbiter-correct", "Usage: npm run arbiter:correct"],
  ["exam-correct", "Usage: npm run exam:correct"],
])("From the image's files, without development packages, %s starts as an unprivileged user", async (name, output) => {
  const notRoot = process.getuid?.() === 0 ? { uid: 65_532, gid: 65_532 } : {};
  const started = run(process.execPath, [`scripts/${name}.ts`], { cwd: app, env: {}, ...notRoot });
  const { stdout, stderr } = await started.catch((error: { stdout: string; stderr: string }) => error);
  expect(stdout + stderr).toContain(output);
});

test("Foreign tools read the image, which migrates, serves, and indexes as user 65532 on a read-only root", async ({
  skip,
  onTestFinished,
}) => {
  if (typeof programs === "string") return skip(programs);
  const { skopeo, env } = programs;
  const inspect = async (kind: string) =>
    JSON.parse(
      (
        await run(
          skopeo,
          ["inspect", `${kind}:${image.archive}:${kind === "oci-archive" ? image.tag : ""}`.replace(/:$/, "")],
          { env },
        )
      ).stdout,
    );
  expect(await inspect("oci-archive")).toMatchObject({ Digest: image.digest, Os: "linux" });
  expect((await inspect("docker-archive")).Layers.length).toBe(3);

  const database = await createDatabase();
  const [chain, sepolia] = [
    await forFile(startTestChain()),
    await forFile(startTestChain({ network: "eip155:84532" })),
  ];
  const migrating = await runContainer(programs, {
    ...{ bundle, name: "migrate", args: ["scripts/migrate.ts"] },
    env: { DATABASE_URL: database.ownerUrl },
  });
  expect(await migrating.process.ended, migrating.process.lastOutput()).toBe(0);

  const key = (byte: number) => Buffer.alloc(32, byte).toString("base64url");
  const port = String(await freePort());
  const shared = { BASE_RPC_URL: chain.rpcUrl, PAY_TO_ADDRESS: PAY_TO };
  const started = async (running: Promise<Container>) => {
    const container = await running;
    // Must stop before the folder is removed, because the program that stops it is in that folder.
    onTestFinished(() => container.stop());
    return container;
  };
  const api = await started(
    runContainer(programs, {
      ...{ bundle, name: "api" },
      env: {
        ...shared,
        DATABASE_URL: database.apiUrl,
        BASE_SEPOLIA_RPC_URL: sepolia.rpcUrl,
        FACILITATOR_PRIVATE_KEY: `0x${"6f".repeat(32)}`,
        ARBITER_PRIVATE_KEY: ARBITER_KEY,
        SIGNING_KEY: key(1),
        SEALING_KEY: key(2),
        DECOY_SEED: key(3),
        HOST: "localhost",
        PORT: port,
        BASE_URL: `http://localhost:${port}`,
      },
    }),
  );
  const indexer = await started(
    runContainer(programs, {
      ...{ bundle, name: "indexer", args: ["scripts/indexer.ts"] },
      env: { ...shared, DATABASE_URL: database.indexerUrl, START_BLOCK: "0", POLL_MS: "250" },
    }),
  );
  const prints = async ({ process }: typeof api, text: string) => {
    await waitUntil(() => process.lastOutput().includes(text) || !process.running(), 60_000);
    expect(process.lastOutput()).toContain(text);
  };
  await prints(api, '"msg":"listening"');
  await prints(indexer, '"msg":"index ready"');
  for (const container of [api, indexer]) {
    expect(container.proc("status")).toMatch(/^Uid:\t65532\t65532\t65532\t65532$/m);
    expect(container.proc("status")).toMatch(/^CapEff:\t0+$/m);
    expect(container.proc("mounts")).toMatch(/^\S+ \/ \S+ ro[,\s]/m);
  }
  const get = async (path: string) => (await fetch(`http://localhost:${port}${path}`)).json();
  expect(await get("/ready")).toEqual({ ok: true });
  const { packages } = (await get("/packages")) as { packages: { integrity: string | null }[] };
  expect(packages.filter(({ integrity }) => integrity === null)).toEqual([]);

  await api.stop();
  expect(await api.process.ended).toBe(0);
}, 300_000);
