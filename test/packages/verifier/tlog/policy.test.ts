import { readFile } from "node:fs/promises";
import { describe, expect, test } from "vitest";
import { formatCheckpoint } from "../../../../packages/verifier/src/tlog/checkpoint.ts";
import { leafHash } from "../../../../packages/verifier/src/tlog/hash.ts";
import { cosign, signNote } from "../../../../packages/verifier/src/tlog/note.ts";
import { parsePolicy, verifyCheckpoint, witnessedAt } from "../../../../packages/verifier/src/tlog/policy.ts";
import { formatProof, parseProof, verifyProof } from "../../../../packages/verifier/src/tlog/tlog-proof.ts";
import { FolderLog, noteSigner, witnessSigner } from "../../../support/log/memory-log.ts";

const signer = noteSigner("trust.example/log", 1);
const [x1, x2, x3, y1] = [11, 12, 13, 21].map((seed) => witnessSigner(`witness.example/${seed}`, seed)) as [
  typeof signer,
  typeof signer,
  typeof signer,
  typeof signer,
];
const POLICY = `# two of the X, and Y
log ${signer.key.vkey} https://trust.example/log
witness X1 ${x1.key.vkey}
witness X2\t${x2.key.vkey} https://witness.example
 witness X3 ${x3.key.vkey}

group X 2 X1 X2 X3
witness Y1 ${y1.key.vkey}
group Y any Y1
group all-of-it all X Y
quorum all-of-it
`;

describe("a policy", () => {
  const check = async (...witnesses: readonly (typeof x1)[]) =>
    verifyCheckpoint(await new FolderLog(signer, ...witnesses).checkpoint(), parsePolicy(POLICY));

  test("It is met by its quorum, and reports each cosigner with its time", async () => {
    expect(await check(x1, x3, y1)).toMatchObject({
      log: "trust.example/log",
      witnesses: ["X1", "X3", "Y1"].map((name) => ({ name, seconds: 1_790_000_000 })),
    });
  });

  test("It is not met by fewer witnesses, and repetitions of one witness count once", async () => {
    for (const less of [[], [x1, x2, x3], [x1, y1], [x1, x1, x1, y1]])
      await expect(check(...less)).rejects.toMatchObject({ code: "quorum_not_met" });
  });

  test("Another log, and a log that only its witnesses signed, are refused", async () => {
    const stranger = await new FolderLog(noteSigner("other.example/log", 1), x1, x2, y1).checkpoint();
    await expect(verifyCheckpoint(stranger, parsePolicy(POLICY))).rejects.toMatchObject({ code: "unknown_log" });
    const sameName = await new FolderLog(noteSigner("trust.example/log", 2), x1, x2, y1).checkpoint();
    await expect(verifyCheckpoint(sameName, parsePolicy(POLICY))).rejects.toMatchObject({ code: "note_not_signed" });
  });

  test("It may require no witness, or one", async () => {
    const log = `log ${signer.key.vkey}\n`;
    const note = await new FolderLog(signer).checkpoint();
    expect(await verifyCheckpoint(note, parsePolicy(`${log}quorum none\n`))).toMatchObject({ witnesses: [] });
    const one = parsePolicy(`${log}witness w ${x1.key.vkey}\nquorum w`);
    await expect(verifyCheckpoint(note, one)).rejects.toMatchObject({ code: "quorum_not_met" });
  });

  test("It distinguishes names by their bytes", () => {
    const kelvin = Buffer.from(`witness \u212a ${x1.key.vkey}\nwitness K ${x2.key.vkey}\nquorum K\n`);
    expect(parsePolicy(kelvin).quorum).toEqual({ witness: expect.objectContaining({ name: x2.key.name }) });
  });

  test.each([
    ["no quorum", "log x", /malformed|vkey/],
    ["two quorum lines", "quorum none\nquorum none", /line 2 .*already a quorum line/],
    ["an unknown name", "quorum w", /no line before defines "w"/],
    ["an unknown keyword", "trust w\nquorum none", /"trust" is not log/],
    ["a member that is defined later", `group g any w\nwitness w ${x1.key.vkey}\nquorum g`, /line 1 .*defines "w"/],
    ["none in a group", "group g any none\nquorum g", /defines "none"/],
    ["a witness named none", `witness none ${x1.key.vkey}\nquorum none`, /"none" is taken/],
    ["a duplicate name", `witness w ${x1.key.vkey}\nwitness w ${x2.key.vkey}\nquorum w`, /"w" is taken/],
    [
      "a duplicate key",
      `witness v ${x1.key.vkey}\nwitness w ${witnessSigner("y", 11).key.vkey}\nquorum w`,
      /named twice/,
    ],
    ["a duplicate log", `log ${signer.key.vkey}\nlog ${signer.key.vkey}\nquorum none`, /named twice/],
    [
      "a duplicate member",
      `witness w ${x1.key.vkey}\ngroup g any w\ngroup h any w\nquorum h`,
      /already a member of a group/,
    ],
    ["a threshold of 0", `witness w ${x1.key.vkey}\ngroup g 0 w\nquorum g`, /from 1 to 1/],
    ["a threshold above its members", `witness w ${x1.key.vkey}\ngroup g 2 w\nquorum g`, /from 1 to 1/],
    ["an empty group", "group g any\nquorum g", /expected group/],
    ["a log's key as a witness", `witness w ${signer.key.vkey}\nquorum w`, /type 4 or 6/],
    ["a witness's key as a log", `log ${x1.key.vkey}\nquorum none`, /not a witness's/],
    ["a carriage return", "quorum none\r\n", /control character/],
    ["too many words", "quorum none none", /expected quorum/],
    ["nothing", "", /no quorum line/],
  ])("A policy with %s is refused", (_, text, reason) => {
    expect(() => parsePolicy(text)).toThrow(reason);
  });
});

const BOTH = parsePolicy(
  `log ${signer.key.vkey}\nwitness w ${x1.key.vkey}\nwitness v ${x2.key.vkey}\ngroup both 2 w v\nquorum both`,
);
const TEXT = formatCheckpoint({ origin: "trust.example/log", size: 256, root: leafHash(Buffer.from("a root")) });
const noteOf = async (text: string, ...lines: readonly (string | Promise<string>)[]) =>
  `${await signNote(text, signer)}${(await Promise.all(lines)).join("")}`;
const [by1, by2] = [await cosign(TEXT, x1, 5), await cosign(TEXT, x2, 6)];
/** A cosignature line with another name. */
const renamed = (line: string, name: string) => line.replace(/^\u2014 [^ ]+/, `\u2014 ${name}`);
const withTime = (line: string, seconds: bigint) => {
  const bytes = Buffer.from(line.trim().split(" ")[2] ?? "", "base64");
  bytes.writeBigUInt64BE(seconds, 4);
  return `${line.split(" ").slice(0, 2).join(" ")} ${bytes.toString("base64")}\n`;
};

describe("a hostile checkpoint", () => {
  test.each<[string, Promise<string>, string]>([
    ["one witness's line twice", noteOf(TEXT, by1, by1), "quorum_not_met"],
    ["one witness at two times", noteOf(TEXT, by1, cosign(TEXT, x1, 9)), "quorum_not_met"],
    ["one witness's line under the other's name", noteOf(TEXT, by1, renamed(by1, x2.key.name)), "quorum_not_met"],
    ["a correct and a wrong line of one witness", noteOf(TEXT, by1, by2, withTime(by2, 7n)), "note_signature_mismatch"],
    [
      "a cosignature of another size",
      noteOf(TEXT, by1, cosign(TEXT.replace("256", "257"), x2, 6)),
      "note_signature_mismatch",
    ],
    ["a time that is not a date", noteOf(TEXT, by1, cosign(TEXT, x2, 8_640_000_000_001)), "note_signature_mismatch"],
    ["a time beyond 2^63", noteOf(TEXT, by1, withTime(by2, 2n ** 64n - 1n)), "note_signature_mismatch"],
    [
      "the log's line cut short",
      noteOf(TEXT, by1, by2).then((note) => note.replace(/(\u2014 trust\S+ \S{20})\S{4}/, "$1")),
      "note_signature_mismatch",
    ],
    [
      "a line added to the signed text",
      noteOf(TEXT, by1, by2).then((note) => note.replace("\n\n", "\nmore\n\n")),
      "note_signature_mismatch",
    ],
    ["one carriage return in its origin", noteOf(TEXT.replace("\n", "\r\n"), by1), "malformed_note"],
    ["a space after its origin", noteOf(TEXT.replace("\n", " \n"), by1), "unknown_log"],
    ["a homoglyph in its origin", noteOf(TEXT.replace("log", "l\u043eg"), by1), "unknown_log"],
    ["its origin in another form of Unicode", noteOf(TEXT.replace("log", "lo\u0067\u0301"), by1), "unknown_log"],
    [
      "a size with digits of another script",
      noteOf(TEXT.replace("256", "\u0662\u0665\u0666"), by1),
      "malformed_checkpoint",
    ],
  ])("A checkpoint with %s is refused", async (_, note, code) => {
    await expect(note.then((text) => verifyCheckpoint(text, BOTH))).rejects.toMatchObject({ code });
  });

  test("A checkpoint counts with signed extensions, unknown lines, and times in the future, which are reported", async () => {
    const stranger = await cosign(TEXT, witnessSigner("stranger.example", 77), 5);
    const unknown = `\u2014 ${x1.key.name} ${Buffer.from("a later type").toString("base64")}\n`;
    const found = await verifyCheckpoint(
      await noteOf(TEXT, stranger, by1, unknown, cosign(TEXT, x2, 99_999_999_999)),
      BOTH,
    );
    expect(found.witnesses.map(witnessedAt)).toEqual(["1970-01-01T00:00:05.000Z", "5138-11-16T09:46:39.000Z"]);
    const more = `${TEXT}an extension\nanother\n`;
    const extended = await verifyCheckpoint(await noteOf(more, cosign(more, x1, 5), cosign(more, x2, 5)), BOTH);
    expect(extended.checkpoint).toMatchObject({ size: 256, extensions: ["an extension", "another"] });
  });

  test("A checkpoint of a foreign ML-DSA-44 witness with an unknown line counts, and no changed one does", async () => {
    const [policy = "", note = ""] = (await readFile(new URL("ml-dsa-44.txt", import.meta.url), "utf8")).split("---\n");
    const trusting = parsePolicy(policy);
    expect(await verifyCheckpoint(note, trusting)).toMatchObject({
      checkpoint: { size: 70_000 },
      witnesses: [{ name: "pq", seconds: 1_790_000_000 }],
    });
    const line = `${note.trimEnd().split("\n").at(-1)}\n`;
    const moved = note.replace(line, withTime(line, 1_790_000_001n));
    await expect(verifyCheckpoint(moved, trusting)).rejects.toMatchObject({ code: "note_signature_mismatch" });
    const nameless = note.replace(line, renamed(line, "witness.example/other"));
    await expect(verifyCheckpoint(nameless, trusting)).rejects.toMatchObject({ code: "quorum_not_met" });
    const short = note.replace(line, `${line.slice(0, -9)}\n`);
    await expect(verifyCheckpoint(short, trusting)).rejects.toMatchObject({ code: "note_signature_mismatch" });
  });
});

describe("a proof", () => {
  const log = new FolderLog(signer, x1, x2, y1);
  log.append(...Array.from({ length: 300 }, (_, at) => Buffer.from(`entry ${at}`)));
  const policy = parsePolicy(POLICY);

  test("It proves that the entry it carries is in the log", async () => {
    const text = await log.proof(257);
    const proof = parseProof(text);
    expect(formatProof(proof)).toBe(text);
    expect(Buffer.from(proof.extra ?? []).toString()).toBe("entry 257");
    expect(await verifyProof(proof, leafHash(proof.extra as Uint8Array), policy)).toMatchObject({
      index: 257,
      checkpoint: { size: 300 },
      witnesses: [{ name: "X1" }, { name: "X2" }, { name: "Y1" }],
    });
    await expect(verifyProof(proof, leafHash(Buffer.from("entry 256")), policy)).rejects.toThrow(/a different root/);
  });

  test("It may omit extra data, and has no hashes in a tree of one entry", async () => {
    const single = new FolderLog(signer);
    single.append(Buffer.from("alone"));
    const [header, , ...rest] = (await single.proof(0)).split("\n");
    const proof = parseProof([header, ...rest].join("\n"));
    expect(proof).toMatchObject({ index: 0, hashes: [], extra: undefined });
    const trusting = parsePolicy(`log ${signer.key.vkey}\nquorum none\n`);
    expect(await verifyProof(proof, leafHash(Buffer.from("alone")), trusting)).toMatchObject({ index: 0 });
  });

  test.each<[string, (text: string) => string]>([
    ["another header", (text) => text.replace("@v1", "@v2")],
    ["no index", (text) => text.replace(/index \d+\n/, "")],
    ["a leading zero", (text) => text.replace("index 2", "index 02")],
    ["extra data after the index", (text) => text.replace(/(extra .*\n)(index .*\n)/, "$2$1")],
    ["empty extra data", (text) => text.replace(/extra .*\n/, "extra \n")],
    ["carriage returns", (text) => text.replaceAll("\n", "\r\n")],
    ["a short hash", (text) => text.replace(/(index \d+\n)..../, "$1")],
    [
      "54 hashes",
      (text) => text.replace(/(index \d+\n)/, `$1${`${Buffer.alloc(32).toString("base64")}\n`.repeat(54)}`),
    ],
    ["no checkpoint", (text) => text.slice(0, text.indexOf("\n\n"))],
  ])("A proof with %s is malformed", async (_, change) => {
    const text = await log.proof(257);
    expect(() => parseProof(change(text))).toThrow(expect.objectContaining({ code: "malformed_log_proof" }));
  });
});
