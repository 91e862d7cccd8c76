import { execFileSync } from "node:child_process";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import manifest from "../../package.json" with { type: "json" };
import { releasedOn, versionedFiles, versionProblem, withVersion } from "../../scripts/version.ts";
import { folderForFile } from "../support/for-file.ts";

describe("the version in package.json", () => {
  test.each(versionedFiles())("It is the version in %s", (file) => {
    const text = readFileSync(file, "utf8");
    expect(withVersion(file, text, manifest)).toBe(text);
  });

  test("It is in the lock file and in the changelog's newest section", () => {
    const lock = JSON.parse(readFileSync("package-lock.json", "utf8"));
    expect([lock.version, lock.packages[""].version]).toEqual([manifest.version, manifest.version]);
    const [, newest] = /^## \[(.+?)\]/m.exec(readFileSync("CHANGELOG.md", "utf8")) ?? [];
    expect([manifest.version, "Unreleased"]).toContain(newest);
  });

  test("It replaces another version in each kind of file", () => {
    const release = { version: "2.3.4", repository: { url: "git+https://git.example/trust.git" } };
    const texts = versionedFiles().map((file) => withVersion(file, readFileSync(file, "utf8"), release));
    expect(texts.filter((text) => !text.includes("2.3.4")).length).toBe(1);
    expect(texts.join("")).not.toContain(`-${manifest.version}.tgz`);
    expect(texts.filter((text) => text.includes(release.repository.url)).length).toBe(7);
  });
});

test("A release dates its section of the changelog", () => {
  const release = { version: "1.2.0" };
  expect(releasedOn("2027-01-02", "# Changelog\n\n## [Unreleased]\n\n## [1.1.0]", release)).toBe(
    "# Changelog\n\n## [1.2.0] - 2027-01-02\n\n## [1.1.0]",
  );
  expect(releasedOn("2027-01-02", "## [1.2.0] - unreleased\n", release)).toBe("## [1.2.0] - 2027-01-02\n");
  expect(() => releasedOn("2027-01-02", "## [1.1.0]\n", release)).toThrow(/no section \[1\.2\.0\]/);
});

describe("a released version", () => {
  test("It does not cover files that changed since", async () => {
    const root = await folderForFile("trust-version-");
    const git = (...args: readonly string[]) => execFileSync("git", args, { cwd: root, stdio: "ignore" });
    const write = (file: string, text: string) => {
      mkdirSync(join(root, file, ".."), { recursive: true });
      writeFileSync(join(root, file), text);
    };
    const commit = () => {
      git("add", "--all");
      git("-c", "user.name=t", "-c", "user.email=t@t.example", "commit", "--message", "change");
    };
    git("init");
    write("api/main.ts", "1");
    write("test/main.test.ts", "1");
    commit();
    expect(versionProblem({ version: "1.0.0" }, root)).toBeNull();
    git("tag", "v1.0.0");
    write("test/main.test.ts", "2");
    commit();
    expect(versionProblem({ version: "1.0.0" }, root)).toBeNull();
    write("api/main.ts", "2");
    const problem = "Version 1.0.0 is released (tag v1.0.0), and api/main.ts changed since.";
    expect(versionProblem({ version: "1.0.0" }, root)).toContain(problem);
    commit();
    expect(versionProblem({ version: "1.0.0" }, root)).toContain(problem);
    expect(versionProblem({ version: "1.0.1" }, root)).toBeNull();
  });

  test("It is not this checkout's version, unless this is the release", () => {
    expect(versionProblem(manifest)).toBeNull();
  });
});
