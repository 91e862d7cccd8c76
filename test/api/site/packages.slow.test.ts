import { createHash } from "node:crypto";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Hono } from "hono";
import { expect, onTestFinished, test } from "vitest";
import { Problem } from "../../../api/platform/http/errors.ts";
import { isPaid } from "../../../api/platform/http/route.ts";
import { PACKAGES, packageUrl, tarballName, VERIFIER, WHEEL } from "../../../api/platform/packages.ts";
import { packageRoutes } from "../../../api/site/packages/routes.ts";
import { readTarballs, TARBALLS } from "../../../api/site/packages/tarballs.ts";
import { buildPackages, buildWheel } from "../../../scripts/packages.ts";

/** The package routes over a folder of tarballs. A problem's response is its code. */
async function served(folder: string, baseUrl = "http://localhost:4020"): Promise<Hono> {
  const app = new Hono();
  for (const route of packageRoutes({ tarballs: await readTarballs(folder), baseUrl }))
    if (!isPaid(route) && "handle" in route) app.get(route.path, route.handle);
  app.onError((error, c) => c.text(error instanceof Problem ? error.code : String(error), 500));
  return app;
}

async function emptyFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "tarballs-"));
  onTestFinished(() => rm(folder, { recursive: true }));
  return folder;
}

interface Listed {
  readonly packages: readonly { readonly name: string; readonly url: string; readonly integrity: string | null }[];
}

const list = async (app: Hono) => ((await (await app.request("/packages")).json()) as Listed).packages;

const PATH = `/packages/${tarballName(VERIFIER)}`;

test("The list has every package with its URL and the integrity of the bytes there", async () => {
  const app = await served(TARBALLS);
  const packages = await list(app);
  expect(packages.map(({ name }) => name)).toEqual(PACKAGES.map(({ name }) => name));
  for (const { url, integrity } of packages) {
    const bytes = new Uint8Array(await (await app.request(new URL(url).pathname)).arrayBuffer());
    expect(integrity).toBe(`sha512-${createHash("sha512").update(bytes).digest("base64")}`);
  }
  expect(packages[0]).toMatchObject({ url: packageUrl("http://localhost:4020", VERIFIER), node: ">=20" });
});

test("A tarball is immutable on a published service and revalidated on a local one", async () => {
  const published = await (await served(TARBALLS, "https://trust.example")).request(PATH);
  expect(published.headers.get("cache-control")).toBe("public, max-age=31536000, immutable");
  const app = await served(TARBALLS);
  const first = await app.request(PATH);
  expect([first.headers.get("content-type"), first.headers.get("cache-control")]).toEqual([
    "application/gzip",
    "no-cache",
  ]);
  const again = await app.request(PATH, { headers: { "if-none-match": first.headers.get("etag") ?? "" } });
  expect([again.status, await again.text()]).toEqual([304, ""]);
});

test("An unknown package is not_found, and one that is not built is not_available", async () => {
  const [built, empty] = [await served(TARBALLS), await served(await emptyFolder())];
  for (const name of ["agent-payment-trust-verifier-9.9.9.tgz", "..%2fpackage.json", "built-from"])
    expect(await (await built.request(`/packages/${name}`)).text()).toBe("not_found");
  expect(await (await empty.request(PATH)).text()).toBe("not_available");
  expect((await list(empty)).map(({ integrity }) => integrity)).toEqual(PACKAGES.map(() => null));
});

test("The wheel's name matches its manifest", async () => {
  const manifest = await readFile(new URL("../../../packages/python/pyproject.toml", import.meta.url), "utf8");
  const [, name = "", version] = /^name = "(.+)"\nversion = "(.+)"$/m.exec(manifest) ?? [];
  expect(WHEEL).toBe(`${name.replaceAll("-", "_")}-${version}-py3-none-any.whl`);
});

test("The wheel is served where it was built", async ({ skip }) => {
  const folder = await emptyFolder();
  expect(await (await (await served(folder)).request(`/packages/${WHEEL}`)).text()).toBe("not_available");
  if (!(await buildWheel(folder))) return skip("there is no Python 3.10, or no package index");
  const answer = await (await served(folder)).request(`/packages/${WHEEL}`);
  expect([answer.status, answer.headers.get("content-type")]).toEqual([200, "application/zip"]);
  expect(Buffer.from(await answer.arrayBuffer()).equals(await readFile(join(folder, WHEEL)))).toBe(true);
});

test("The same sources yield the same bytes and are not built twice", async () => {
  const folder = await emptyFolder();
  expect([await buildPackages(folder), await buildPackages(folder)]).toEqual([true, false]);
  for (const name of PACKAGES.map(tarballName))
    expect((await readFile(join(folder, name))).equals(await readFile(join(TARBALLS, name))), name).toBe(true);
});
