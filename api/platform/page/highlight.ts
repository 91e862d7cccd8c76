import bash from "refractor/bash";
import { refractor } from "refractor/core";
import javascript from "refractor/javascript";
import json from "refractor/json";
import python from "refractor/python";
import solidity from "refractor/solidity";
import typescript from "refractor/typescript";
import yaml from "refractor/yaml";
import { memoize } from "../memo.ts";
import { html, type Markup } from "./html.ts";

for (const grammar of [bash, javascript, json, python, solidity, typescript, yaml]) refractor.register(grammar);

export type Language = "bash" | "javascript" | "json" | "python" | "solidity" | "typescript" | "yaml";

const BY_ENDING: Readonly<Record<string, Language>> = {
  js: "javascript",
  json: "json",
  mjs: "javascript",
  py: "python",
  sol: "solidity",
  ts: "typescript",
  yml: "yaml",
};

/** Returns the language of the first file named in a caption, if any. */
export const languageOf = (caption: string): Language | undefined =>
  BY_ENDING[/^[\w./-]+\.([a-z]+)\b/.exec(caption)?.[1] ?? ""];

/** The stylesheet's classes for the kinds of token that have a color. */
const COLORS: Readonly<Record<string, string>> = {
  keyword: "kw",
  atrule: "kw",
  boolean: "kw",
  string: "str",
  "template-string": "str",
  interpolation: "",
  comment: "com",
  number: "num",
  constant: "num",
  function: "fn",
  "class-name": "fn",
  property: "fn",
};

type Tree = ReturnType<typeof refractor.highlight>;
type Branch = Tree["children"][number];

interface Run {
  readonly color: string;
  readonly text: string;
}

/** Flattens a tree to texts of one color each. The innermost color wins. */
function runs(node: Branch, color: string): readonly Run[] {
  if (node.type === "text") return [{ color, text: node.value }];
  if (node.type !== "element") return [];
  const names = [node.properties.className].flat().map(String);
  const own = names.map((name) => COLORS[name]).find((one) => one !== undefined) ?? color;
  return node.children.flatMap((child) => runs(child, own));
}

/** Longer texts stay plain, because coloring takes time and only helps reading. */
const LONGEST = 10_000;
const kept = memoize<Markup>(300);

/** Renders code with its colors as stylesheet classes. Renderings are cached. */
export function highlight(text: string, language: Language): Markup {
  if (text.length > LONGEST) return html`${text}`;
  return kept(`${language} ${text}`, () => {
    const found = refractor.highlight(text, language).children.flatMap((node) => runs(node, ""));
    return html`${found.map((run) => (run.color === "" ? run.text : html`<span class="${run.color}">${run.text}</span>`))}`;
  });
}
