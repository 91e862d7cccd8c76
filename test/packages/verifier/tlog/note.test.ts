import type { webcrypto } from "node:crypto";
import { describe, expect, test } from "vitest";
import { formatCheckpoint, parseCheckpoint } from "../../../../packages/verifier/src/tlog/checkpoint.ts";
import { EMPTY_ROOT } from "../../../../packages/verifier/src/tlog/hash.ts";
import {
  cosign,
  type NoteSigner,
  parseNote,
  parseSignatures,
  signNote,
  verifyNote,
  verifySignatures,
} from "../../../../packages/verifier/src/tlog/note.ts";
import { NOTE_TYPE, parseVerifierKey, verifierKey } from "../../../../packages/verifier/src/tlog/verifier-key.ts";
import { noteSigner, witnessSigner } from "../../../support/log/memory-log.ts";

/** The examples of C2SP signed-note and tlog-checkpoint. */
const EXAMPLE_KEY = "example.com/foo+530d903a+AekyeRrm56hApGFkyQR4ZCbV54Id2LKaANYcrnKv3U2k";
const EXAMPLE = `This is an example message.

— example.com/foo Uw2QOkn8srV1yJGh2VYRlL1Tnagv1YEq6TfXppzi2ONncAlTgK7Ztg1ERYNZXsYjOBH3mFXmRKuwHjG1Yu72IneyaQM=
`;
const HEAD = "example.com/behind-the-sofa\n20852163\nCsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I=\n";

const log = noteSigner("trust.example/log", 1);
const witness = witnessSigner("witness.example/w1", 2);
const TEXT = formatCheckpoint({ origin: "trust.example/log", size: 0, root: EMPTY_ROOT });

describe("a signed note", () => {
  test("The specification's example verifies, and no other text does", async () => {
    const key = parseVerifierKey(EXAMPLE_KEY);
    expect(key).toMatchObject({ name: "example.com/foo", id: "530d903a", type: NOTE_TYPE.ed25519, vkey: EXAMPLE_KEY });
    const { text, signatures } = await verifyNote(EXAMPLE, [key]);
    expect(text).toBe("This is an example message.\n");
    expect(signatures).toMatchObject([{ name: "example.com/foo", seconds: null }]);
    await expect(verifyNote(EXAMPLE.replace("This", "That"), [key])).rejects.toMatchObject({
      code: "note_signature_mismatch",
    });
  });

  test("A note that we sign verifies, also with unknown signatures", async () => {
    const note = await signNote("Text\n\nof two parts\n", log, noteSigner("stranger.example", 9));
    const { text, signatures, unknown } = await verifyNote(note, [log.key]);
    expect(text).toBe("Text\n\nof two parts\n");
    expect([signatures.map(({ name }) => name), unknown.map(({ name }) => name)]).toEqual([
      ["trust.example/log"],
      ["stranger.example"],
    ]);
  });

  test("A note without a signature by a known key is refused", async () => {
    await expect(verifyNote(EXAMPLE, [log.key])).rejects.toMatchObject({ code: "note_not_signed" });
    const sameName = noteSigner("example.com/foo", 3);
    await expect(verifyNote(EXAMPLE, [sameName.key])).rejects.toMatchObject({ code: "note_not_signed" });
  });

  test("A note with one wrong signature by a known key is refused in spite of correct ones", async () => {
    const note = await signNote(TEXT, log);
    const wrong = `${note}${(await signNote("Else\n", log)).split("\n\n")[1]}`;
    await expect(verifyNote(wrong, [log.key])).rejects.toMatchObject({ code: "note_signature_mismatch" });
  });

  const [LINE = ""] = EXAMPLE.split("\n").slice(-2);
  const name = (other: string) => EXAMPLE.replace("example.com/foo", other);
  test.each([
    ["nothing", ""],
    ["no signature", "Text\n\n"],
    ["no empty line", `Text\n${LINE}\n`],
    ["no newline at the end", EXAMPLE.trimEnd()],
    ["a carriage return", EXAMPLE.replace("\n", "\r\n")],
    ["a lone surrogate", EXAMPLE.replace("T", "\ud800")],
    ["a hyphen for the dash", EXAMPLE.replace("—", "-")],
    ["a name with a plus", name("example.com+foo")],
    ["a name with a no-break space", name("example.com\u00a0foo")],
    ["a name with a next-line character", name("example.com\u0085foo")],
    ["no name", name("")],
    ["no padding", EXAMPLE.replace("QM=", "QM")],
    ["spare bits", EXAMPLE.replace("aQM=", "aQN=")],
    ["no signature after the key ID", `Text\n\n— example.com/foo Uw2QOg==\n`],
    ["something after the base64", EXAMPLE.replace("QM=", "QM= x")],
    ["101 signatures", `${EXAMPLE}${`${LINE}\n`.repeat(100)}`],
    ["more than 1,000,000 characters", `${"x".repeat(1_000_000)}\n${EXAMPLE}`],
  ])("A note with %s is malformed", (_, note) => {
    expect(() => parseNote(note)).toThrow(expect.objectContaining({ code: "malformed_note" }));
  });

  test("Invalid UTF-8 is refused, and a byte order mark is not dropped", () => {
    expect(() => parseNote(Buffer.concat([Buffer.from([0xff]), Buffer.from(EXAMPLE)]))).toThrow(/not UTF-8/);
    expect(parseNote(Buffer.from(`\ufeff${EXAMPLE}`)).text).toBe("\ufeffThis is an example message.\n");
  });

  test("16 signatures of any type fit", () => {
    const long = `— example.com/foo ${"A".repeat(3_240)}\n`;
    expect(parseNote(`Text\n\n${long.repeat(16)}`).signatures).toHaveLength(16);
  });
});

describe("a vkey", () => {
  test.each([
    ["an upper-case key ID", EXAMPLE_KEY.replace("530d903a", "530D903A")],
    ["another key ID", EXAMPLE_KEY.replace("530d903a", "530d903b")],
    ["a short key", EXAMPLE_KEY.slice(0, -4)],
    ["spare bits", verifierKey("x", 4, new Uint8Array(32)).vkey.replace(/A$/, "B")],
    ["a space in its name", EXAMPLE_KEY.replace("foo", "f oo")],
    ["no name", EXAMPLE_KEY.replace("example.com/foo", "")],
    ["a line break", `${EXAMPLE_KEY}\n`],
  ])("A vkey with %s is malformed", (_, vkey) => {
    expect(() => parseVerifierKey(vkey)).toThrow(expect.objectContaining({ code: "malformed_vkey" }));
  });

  test("A vkey of an unsupported type is refused by its name", () => {
    const ecdsa = `x+00000000+${Buffer.from([2, ...new Uint8Array(32)]).toString("base64")}`;
    expect(() => parseVerifierKey(ecdsa)).toThrow(expect.objectContaining({ code: "unsupported_signature_type" }));
  });

  test("A vkey is written as it was parsed, also with a plus in its base64", () => {
    for (let seed = 0; seed < 50; seed++) {
      const { key } = witnessSigner("witness.example/w1", seed);
      expect(parseVerifierKey(key.vkey)).toEqual({ ...key, publicKey: Uint8Array.from(key.publicKey) });
    }
  });
});

describe("a checkpoint", () => {
  test("The specification's example is parsed and formatted", () => {
    const checkpoint = parseCheckpoint(HEAD);
    expect(checkpoint).toMatchObject({ origin: "example.com/behind-the-sofa", size: 20_852_163, extensions: [] });
    expect(formatCheckpoint(checkpoint)).toBe(HEAD);
    expect(parseCheckpoint(`${HEAD}one\ntwo\n`).extensions).toEqual(["one", "two"]);
  });

  const size = (digits: string) => HEAD.replace("20852163", digits);
  test.each([
    ["nothing", ""],
    ["two lines", "a\n0\n"],
    ["no newline at its end", HEAD.trimEnd()],
    ["an empty origin", HEAD.replace("example.com/behind-the-sofa", "")],
    ["an empty extension line", `${HEAD}\n`],
    ["a leading zero", size("020852163")],
    ["a size with an exponent", size("2e7")],
    ["a size beyond 2^53", size("9007199254740992")],
    ["a short root", HEAD.replace("CsUYapGG", "")],
    ["spare bits in its root", HEAD.replace("q2I=", "q2J=")],
    ["entries missing from its root", size("0")],
  ])("A checkpoint with %s is malformed", (_, text) => {
    expect(() => parseCheckpoint(text)).toThrow(expect.objectContaining({ code: "malformed_checkpoint" }));
  });
});

describe("a cosignature", () => {
  const cosigned = async (signer: NoteSigner, seconds: number) =>
    `${await signNote(TEXT, log)}${await cosign(TEXT, signer, seconds)}`;

  test("It states its time and is valid only for this text and this time", async () => {
    const note = await cosigned(witness, 1_679_315_147);
    const { signatures } = await verifyNote(note, [log.key, witness.key]);
    expect(signatures.map(({ name, seconds }) => [name, seconds])).toEqual([
      ["trust.example/log", null],
      ["witness.example/w1", 1_679_315_147],
    ]);
    const later = Buffer.from((await cosigned(witness, 1_679_315_148)).split(" ").at(-1) ?? "", "base64");
    const before = Buffer.from(note.split(" ").at(-1) ?? "", "base64");
    const mixed = Buffer.concat([later.subarray(0, 12), before.subarray(12)]).toString("base64");
    const moved = `${note.slice(0, note.lastIndexOf(" "))} ${mixed}\n`;
    await expect(verifyNote(moved, [witness.key])).rejects.toMatchObject({ code: "note_signature_mismatch" });
  });

  test("It can be checked without its note, as a witness returns it", async () => {
    const lines = parseSignatures(`${await cosign(TEXT, witness, 5)}${await cosign(TEXT, witnessSigner("w", 7), 6)}`);
    const { signatures, unknown } = await verifySignatures(TEXT, lines, [witness.key]);
    expect([signatures.map(({ seconds }) => seconds), unknown.map(({ name }) => name)]).toEqual([[5], ["w"]]);
    await expect(verifySignatures(HEAD, lines, [witness.key])).rejects.toThrow(/does not verify/);
  });

  test("It signs the text of the specification", async () => {
    const words: string[] = [];
    const sign = (message: Uint8Array) => {
      words.push(Buffer.from(message).toString());
      return new Uint8Array(64);
    };
    await cosign(HEAD, { key: witness.key, sign }, 1_679_315_147);
    expect(words).toEqual([`cosignature/v1\ntime 1679315147\n${HEAD}`]);
  });

  test("An ML-DSA-44 cosignature is verified if the runtime supports it", async () => {
    const { subtle } = globalThis.crypto;
    const keys = (await subtle.generateKey("ML-DSA-44", true, ["sign", "verify"])) as webcrypto.CryptoKeyPair;
    const raw = new Uint8Array(await subtle.exportKey("raw-public" as "raw", keys.publicKey));
    const key = verifierKey("witness.example/pq", NOTE_TYPE.mlDsa44, raw);
    const sign = async (message: Uint8Array) =>
      new Uint8Array(await subtle.sign("ML-DSA-44", keys.privateKey, Uint8Array.from(message)));
    const note = await cosigned({ key, sign }, 7);
    expect((await verifyNote(note, [parseVerifierKey(key.vkey)])).signatures).toMatchObject([{ seconds: 7 }]);
    const other = verifierKey("witness.example/other", NOTE_TYPE.mlDsa44, raw);
    const renamed = await cosigned(
      { key: other, sign: () => parseNote(note).signatures.at(-1)?.signature.subarray(8) as Uint8Array },
      7,
    );
    await expect(verifyNote(renamed, [other])).rejects.toMatchObject({ code: "note_signature_mismatch" });
  });

  test("A cosigner does not sign a log's note, and a log does not cosign", async () => {
    await expect(cosign(TEXT, log, 1)).rejects.toThrow(/not a cosigner's/);
    await expect(signNote(TEXT, witness)).rejects.toThrow(/a cosigner's/);
    await expect(cosign("not a checkpoint\n", witness, 1)).rejects.toMatchObject({ code: "malformed_checkpoint" });
  });
});
