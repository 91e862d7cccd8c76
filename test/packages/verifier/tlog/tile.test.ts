import { expect, test } from "vitest";
import { entriesPath, parseTilePath, tilePath, tileWidth } from "../../../../packages/verifier/src/tlog/tile.ts";

test.each([
  [{ level: 0, n: 0, width: 256 }, "tile/0/000"],
  [{ level: 0, n: 1_067, width: 12 }, "tile/0/x001/067.p/12"],
  [{ level: 1, n: 1_234_067, width: 256 }, "tile/1/x001/x234/067"],
  [{ level: 63, n: 999, width: 255 }, "tile/63/999.p/255"],
  [{ level: 2, n: 1_000, width: 1 }, "tile/2/x001/000.p/1"],
  [{ level: 0, n: 2 ** 45 - 1, width: 256 }, "tile/0/x035/x184/x372/x088/831"],
])("tile %j has the path %s", (id, path) => {
  expect(tilePath(id)).toBe(path);
  expect(parseTilePath(path)).toEqual(id);
});

test("bundles of entries have paths of their own", () => {
  expect(entriesPath(1_067, 12)).toBe("tile/entries/x001/067.p/12");
  expect(entriesPath(0)).toBe("tile/entries/000");
  expect(parseTilePath("tile/entries/x001/067.p/12")).toEqual({ entries: true, n: 1_067, width: 12 });
});

test.each([
  "",
  "tile/0",
  "tile/0/0",
  "tile/0/00",
  "tile/0/0000",
  "tile/0/1067",
  "tile/0/001/067",
  "tile/0/x001",
  "tile/0/x001/x067",
  "tile/0/x000/067",
  "tile/0/x000/x001/067",
  "tile/0/X001/067",
  "tile/0/000/",
  "/tile/0/000",
  "tile/00/000",
  "tile/01/000",
  "tile/64/000",
  "tile/-1/000",
  "tile/data/000",
  "tile/0/000.p",
  "tile/0/000.p/",
  "tile/0/000.p/0",
  "tile/0/000.p/01",
  "tile/0/000.p/256",
  "tile/0/000.p/1000",
  "tile/0/000.p/1/2",
  "tile/0/000\n",
  "tile/0/000?",
  "tile/0/x035/x184/x372/x088/832",
  "tile/0/x001/x000/x000/x000/x000/x000/000",
])("%j is no path of a tile", (path) => {
  expect(parseTilePath(path)).toBeNull();
});

test("a tree of 70,000 entries has the tiles that the specification counts", () => {
  expect([272, 273, 274].map((n) => tileWidth(70_000, 0, n))).toEqual([256, 112, -144]);
  expect([0, 1].map((n) => tileWidth(70_000, 1, n))).toEqual([256, 17]);
  expect(tileWidth(70_000, 2, 0)).toBe(1);
});
