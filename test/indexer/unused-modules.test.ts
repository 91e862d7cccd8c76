import { execFile } from "node:child_process";
import { dirname, join } from "node:path";
import { pathToFileURL } from "node:url";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { ponderPackage } from "../../indexer/deployment.ts";
import { bareEnvironment } from "../support/service/environment.ts";

const file = (path: string) => JSON.stringify(pathToFileURL(path).href);
const inPonder = (path: string) => file(join(dirname(ponderPackage()), "dist/esm", path));

/** What a process of Node prints that has loaded Ponder. */
const PROGRAM = `
  import { registerHooks } from "node:module";
  import { spareUnusedModules } from ${file("indexer/unused-modules.ts")};
  const loaded = [];
  registerHooks({ load: (url, context, next) => (loaded.push(url), next(url, context)) });
  spareUnusedModules();
  const { chains } = await import(${inPonder("utils/chains.js")});
  const { createConfig } = await import(${inPonder("index.js")});
  const of = (part) => loaded.filter((url) => url.includes(part)).length;
  console.log(JSON.stringify({
    chains: [...new Set(Object.values(chains).map(({ id }) => id))],
    configures: typeof createConfig,
    definitions: of("/viem/_esm/chains/definitions/"),
    graphql: of("/node_modules/graphql"),
    ponder: of("/node_modules/ponder/") > 10,
  }));
`;

test("Ponder knows Base, and loads no other chain's definition and no GraphQL server", async () => {
  const { stdout } = await promisify(execFile)(process.execPath, ["--input-type=module", "-e", PROGRAM], {
    env: bareEnvironment(),
  });
  const expected = { chains: [8453], configures: "function", definitions: 1, graphql: 0, ponder: true };
  expect(JSON.parse(stdout)).toEqual(expected);
});
