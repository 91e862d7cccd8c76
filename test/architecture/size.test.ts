import { describe, expect, test } from "vitest";
import { SOURCES, textOf } from "./sources.ts";

describe("the size of files", () => {
  test.each(SOURCES.filter((file) => !file.includes("/migrations/")))("%s has one subject", (file) => {
    expect(textOf(file).split("\n").length).toBeLessThanOrEqual(file.startsWith("contracts/") ? 450 : 301);
  });
});
