import { serve } from "@hono/node-server";
import { Hono } from "hono";
import { describe, expect, test } from "vitest";
import { isPaid } from "../../api/platform/http/route.ts";
import { ESCROW, installCommands, npxCommand, VERIFIER } from "../../api/platform/packages.ts";
import { packageRoutes } from "../../api/site/packages/routes.ts";
import { readTarballs, TARBALLS } from "../../api/site/packages/tarballs.ts";
import { inShell } from "../support/browser/page-code.ts";
import { folderForFile, forFile } from "../support/for-file.ts";
import { npmPrograms, startRegistry } from "../support/packages/registry.ts";

/** npm 12 is the first that refuses URLs, again in each later command. */
const REFUSES_URLS = "12.2.2";
/** One version of each supported major. */
const VERSIONS = ["10.9.9", "11.21.2", REFUSES_URLS];

const registry = await forFile(startRegistry());
const url = await servePackages();

/** Serves only the packages' routes. */
async function servePackages(): Promise<string> {
  const app = new Hono();
  const tarballs = await readTarballs(TARBALLS);
  for (const route of packageRoutes({ tarballs, baseUrl: "http://localhost" }))
    if (!isPaid(route) && "handle" in route) app.get(route.path, route.handle);
  const port = await new Promise<number>((resolve) => {
    const server = serve({ fetch: app.fetch, port: 0, hostname: "127.0.0.1" }, (info) => resolve(info.port));
    void forFile(server);
  });
  return `http://127.0.0.1:${port}`;
}

const PROGRAMS = await Promise.all(VERSIONS.map(async (version) => [version, await npmPrograms(version)] as const));

describe.each(PROGRAMS)("npm %s", (version, programs) => {
  test.skipIf(programs === null)(
    "It installs our packages permanently and runs their programs from a URL",
    async () => {
      const home = await folderForFile(`npm-${version}-`);
      const env = { ...registry.environment(home), PATH: `${programs}:${process.env.PATH}` };
      const shell = (text: string) => inShell({ home, env }, { id: "command", caption: "command", text });
      expect((await shell("npm --version")).trim()).toBe(version);
      await shell(installCommands(url, [VERIFIER, ESCROW], ["jose"]));
      for (const { name } of [VERIFIER, ESCROW]) expect(await shell(`npx ${name} --help`)).toContain(`${name} `);
      if (version === REFUSES_URLS) {
        // Later commands also work: another package, a clean installation, and one without the lock file.
        await shell("npm install canonicalize && npm ci && rm -r node_modules package-lock.json && npm install");
        expect(await shell(`npx ${VERIFIER.name} --help`)).toContain(VERIFIER.name);
      }
      await shell("rm -r node_modules package.json package-lock.json");
      expect(await shell(`${npxCommand(url, VERIFIER)} --help`)).toContain(`${VERIFIER.name} `);
    },
  );
});
