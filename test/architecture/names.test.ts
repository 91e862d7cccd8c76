import { describe, expect, test } from "vitest";
import { codeOf, SOURCES } from "./sources.ts";

const OF_TYPESCRIPT = ["Awaited", "Exclude", "Extract", "Omit", "Parameters", "Partial", "Pick", "Readonly", "Record"];
const OF_BROWSERS = ["Document", "Element", "Node", "Range", "Text", "Window"];
const GLOBALS = new Set([...Object.getOwnPropertyNames(globalThis), ...OF_TYPESCRIPT, ...OF_BROWSERS]);

describe("the names of types", () => {
  test("are none of the language's, of Node's or of browsers'", () => {
    expect(["Request", "Event", "Error", "Map"].filter((name) => !GLOBALS.has(name))).toEqual([]);
    const shadowing = SOURCES.filter((file) => file.endsWith(".ts")).flatMap((file) =>
      [...codeOf(file).matchAll(/^\s*(?:export )?(?:declare )?(?:interface|type|class|enum) (\w+)/gm)]
        .map(([, name = ""]) => name)
        .filter((name) => GLOBALS.has(name))
        .map((name) => `${file}: ${name}`),
    );
    expect(shadowing.sort()).toEqual([]);
  });
});
