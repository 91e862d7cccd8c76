import { execFile } from "node:child_process";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { describe, expect, test } from "vitest";
import { PACKAGES, tarballName } from "../../api/platform/packages.ts";
import { TARBALLS } from "../../api/site/packages/tarballs.ts";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const call = promisify(execFile);
const lint = (program: string, ...args: string[]) =>
  call(process.execPath, [join(ROOT, "node_modules/.bin", program), ...args], { cwd: ROOT });
const manifestOf = async (folder: string) => JSON.parse(await readFile(join(ROOT, folder, "package.json"), "utf8"));

test.each([".", "packages/action", ...PACKAGES.map(({ folder }) => `packages/${folder}`)])(
  "%s is under the MIT license and includes its text",
  async (folder) => {
    expect((await manifestOf(folder)).license).toBe("MIT");
    const text = await readFile(join(ROOT, folder, "LICENSE"), "utf8");
    expect(text).toBe(await readFile(join(ROOT, "LICENSE"), "utf8"));
    expect(text).toMatch(/^MIT License\n\nCopyright \(c\) 2026 The Agent Payment Trust Service authors\n/);
  },
);

describe.each(PACKAGES)("$name", (published) => {
  const tarball = join(TARBALLS, tarballName(published));

  test("The manifest names its repository, its keywords, and its Node version", async () => {
    const manifest = await manifestOf(`packages/${published.folder}`);
    expect(manifest).toMatchObject({
      repository: { type: "git", directory: `packages/${published.folder}` },
      engines: { node: ">=20" },
      files: ["dist"],
      type: "module",
    });
    expect(manifest.keywords.length).toBeGreaterThan(3);
    expect(manifest).not.toHaveProperty("homepage");
  });

  test("The packed tarball passes publint", async () => {
    expect((await lint("publint", tarball, "--strict")).stdout).toMatch(/All good!/);
  });

  test("Every importer finds its types according to attw, and a package without exports has none", async () => {
    const { stdout } = await lint("attw", tarball, "--profile", "esm-only", "--format", "json");
    const { analysis } = JSON.parse(stdout);
    expect(analysis.packageName).toBe(published.name);
    const { exports } = await manifestOf(`packages/${published.folder}`);
    expect(analysis.types === false).toBe(!("." in exports));
  });
});
