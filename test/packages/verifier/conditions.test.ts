import { createHash } from "node:crypto";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { conditionsSha256 } from "../../../api/arbiter/claim.ts";
import { checkConditions, claimSha256 } from "../../../packages/verifier/src/commands/conditions.ts";
import { InputError } from "../../../packages/verifier/src/refusal.ts";
import { folderForFile, forFile } from "../../support/for-file.ts";
import { serveHttp } from "../../support/http-server.ts";
import { runCommand } from "../../support/packages/run-command.ts";

const sha256 = (bytes: string): string => createHash("sha256").update(bytes).digest("hex");

const PAYLOAD = "café \u20ac \u{1f600}";
const CLAIM = {
  deal_ref: "order 7",
  conditions: { payload_text: PAYLOAD, expected_sha256: sha256(PAYLOAD).toUpperCase() },
  category: "payload-hash",
};
const CANONICAL = `{"category":"payload-hash","conditions":{"expected_sha256":"${CLAIM.conditions.expected_sha256}","payload_text":"${PAYLOAD}"}}`;

const folder = await folderForFile("verifier-conditions-");
const files = {
  "claim.json": JSON.stringify(CLAIM, null, 2),
  "other.json": JSON.stringify({ ...CLAIM, conditions: { ...CLAIM.conditions, payload_text: "cafe" } }),
  "verdict.json": JSON.stringify({ conditions_sha256: conditionsSha256(CLAIM.category, CLAIM.conditions) }),
  "twice.json": '{"category":"payload-hash","conditions":{"min_bytes":1,"min_bytes":2}}',
  "huge.json": '{"category":"http-delivery","conditions":{"min_bytes":1e400}}',
  "list.json": '{"category":"http-delivery","conditions":[]}',
  "fraction.json": '{"conditions_sha256":"00","score":0.5}',
};
for (const [name, content] of Object.entries(files)) await writeFile(join(folder, name), content);
const { url: origin } = await forFile(serveHttp((_, response) => response.end(files["claim.json"]), "localhost"));

const inFolder = (args: readonly string[]) => args.map((arg) => (arg.endsWith(".json") ? join(folder, arg) : arg));
const run = (...args: readonly string[]) => runCommand(() => checkConditions(inFolder(args)));

describe("exit code 0", () => {
  test("It prints the hash of a claim from a file or a URL, without members that do not count", async () => {
    for (const source of ["claim.json", `${origin}/claim`])
      expect(await run(source)).toEqual({ code: 0, text: `${sha256(CANONICAL)}\n` });
  });

  test("It compares the conditions with the verdict's", async () => {
    expect(await run("claim.json", "--verdict", "verdict.json")).toEqual({
      code: 0,
      text: expect.stringMatching(/^[0-9a-f]{64}\nsame: .*\n {2}The verdict's own signature is not checked here/),
    });
  });
});

test("The command exits with 1 for a verdict on other conditions", async () => {
  expect(await run("other.json", "--verdict", "verdict.json")).toEqual({
    code: 1,
    text: expect.stringContaining(`DIFFERS: the verdict names "${sha256(CANONICAL)}"`),
  });
});

describe("exit code 2", () => {
  test.each([
    ["a duplicate condition", ["twice.json"], /^The claim is not valid: an object contains a duplicate member/],
    ["nothing", [], /Computes the conditions_sha256/],
    ["standard input twice", ["-", "--verdict", "-"], /Computes the conditions_sha256/],
    ["a number that no double holds", ["huge.json"], /too large for a double/],
    ["conditions that are not an object", ["list.json"], /expected category, a string, and conditions, an object/],
    ["a verdict instead of a claim", ["verdict.json"], /expected category, a string, and conditions/],
    ["a claim instead of a verdict", ["claim.json", "--verdict", "claim.json"], /conditions_sha256 is missing/],
    [
      "a verdict that no signer accepts",
      ["claim.json", "--verdict", "fraction.json"],
      /a signed number must be a whole/,
    ],
  ])("It is returned for %s", async (_, args, message) => {
    const refused = checkConditions(inFolder(args));
    await expect(refused).rejects.toThrow(InputError);
    await expect(refused).rejects.toThrow(message);
  });
});

describe("a claim with any JSON", () => {
  test("Its numbers count as RFC 8785 writes them", () => {
    const written =
      '{"conditions":{"c":1e21,"b":-0,"a":[0.10,1E2,333333333.33333329],"\u20ac":9007199254740993},"category":"any"}';
    const canonical =
      '{"category":"any","conditions":{"a":[0.1,100,333333333.3333333],"b":0,"c":1e+21,"\u20ac":9007199254740992}}';
    expect(claimSha256(written)).toBe(sha256(canonical));
  });

  test("Its hash is the arbiter's in any notation", () => {
    const number = fc.oneof(
      fc.constantFrom(1e21, 0.1, -0, 5e-324, 1.7976931348623157e308, 1e-7),
      fc.double({ noNaN: true, noDefaultInfinity: true }),
    );
    const name = fc.oneof(
      fc.constantFrom("__proto__", "10", "9", "", "\u20ac", "\u{1f600}", "\r"),
      fc.string({ unit: "binary", maxLength: 4 }),
    );
    const { value } = fc.letrec<{ value: unknown }>((tie) => ({
      value: fc.oneof(
        { maxDepth: 4 },
        fc.string({ unit: "binary" }),
        number,
        fc.constantFrom(null, true, false),
        fc.array(tie("value"), { maxLength: 4 }),
        fc.array(fc.tuple(name, tie("value")), { maxLength: 5 }).map((members) => new Map(members)),
      ),
    }));
    const conditions = fc.array(fc.tuple(name, value), { maxLength: 5 }).map((members) => new Map(members));
    fc.assert(
      fc.property(fc.string({ unit: "binary" }), conditions, fc.boolean(), (category, given, first) => {
        const members = [`"category":${JSON.stringify(category)}`, `"conditions": ${write(given)}`, '"deal_ref":0.5'];
        const claim = `{${(first ? members : members.toReversed()).join(" ,")}}`;
        const submitted = JSON.parse(claim) as { category: string; conditions: unknown };
        expect(claimSha256(claim)).toBe(conditionsSha256(submitted.category, submitted.conditions));
      }),
      { numRuns: 300 },
    );
  });
});

/** The JSON text of a value whose objects are maps. Members keep the map's order, and numbers have an exponent. */
function write(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(write).join(", ")}]`;
  if (value instanceof Map)
    return `{${[...value].map(([name, part]) => `${JSON.stringify(name)} :${write(part)}`).join()}}`;
  if (typeof value === "number") return Object.is(value, -0) ? "-0" : value.toExponential();
  return JSON.stringify(value);
}
