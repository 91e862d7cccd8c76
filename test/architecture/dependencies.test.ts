import { expect, test } from "vitest";
import { codeOf, importsOf, SOURCES } from "./sources.ts";

const CODE = SOURCES.filter((file) => /^(api|indexer|packages|scripts)\/.*\.(ts|mjs)$/.test(file));

/** A folder that a package builds into, whatever its name: what lies there may change with any release. */
const BUILT = /^(@[\w.-]+\/)?[\w.-]+\/(.+\/)?(build|cjs|dist|esm|internal|lib|out|src|_\w+)\//;
/** The package's index would load 40 MB, and it exports nothing smaller. */
const CONTAINED: Readonly<Record<string, string>> = {
  "api/platform/chain/accounts.ts": "@bitauth/libauth/build/lib/crypto/secp256k1.js",
};

test("no file imports from inside a folder that a dependency is built into", () => {
  const imports = CODE.flatMap((file) =>
    importsOf(file)
      .filter((target) => !CODE.includes(target) && !/^(node:|(api|contracts|indexer|packages|scripts)\/)/.test(target))
      .map((target) => ({ file, target })),
  );
  expect(imports.length).toBeGreaterThan(400);
  const inside = imports.filter(({ file, target }) => BUILT.test(target) && CONTAINED[file] !== target);
  expect(inside).toEqual([]);
});

const CHANGED_CLASS = /\bObject\.create\b|\b(Object|Reflect)\.setPrototypeOf\b|\.prototype\b/;

test("no file derives an object by hand or changes a class's prototype", () => {
  const code = (file: string) => codeOf(file).replace(/^\s*(\/\/|\/?\*).*$/gm, "");
  expect(CODE.filter((file) => CHANGED_CLASS.test(code(file)))).toEqual([]);
});
