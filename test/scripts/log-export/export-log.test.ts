import { hash, randomUUID } from "node:crypto";
import { mkdir, readFile, rename, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { describe, expect, test } from "vitest";
import { leafHash } from "../../../packages/verifier/src/tlog/hash.ts";
import { parsePolicy } from "../../../packages/verifier/src/tlog/policy.ts";
import { parseProof, verifyProof } from "../../../packages/verifier/src/tlog/tlog-proof.ts";
import { type Exported, exportLogs } from "../../../scripts/log-export/export-log.ts";
import { type Folder, openFolder } from "../../../scripts/log-export/folder.ts";
import { folderForFile } from "../../support/folder.ts";
import { filesIn, sourceOf, wholeSize } from "../../support/log/exports.ts";
import { FolderLog } from "../../support/log/log-folder.ts";
import { noteSigner, witnessSigner } from "../../support/log/note-keys.ts";

const root = await folderForFile("log-export-");
const newFolder = () => join(root, randomUUID());
const witness = witnessSigner("witness.example/w", 2);
const FIRST = noteSigner("trust.example/log", 1);
const SECOND = noteSigner("trust.example/log/2", 3);

/** Entries 0, 1, 2 … of a log; those from `forkedAt` on are others. */
function logOf(size: number, { signer = FIRST, forkedAt = Number.POSITIVE_INFINITY } = {}): FolderLog {
  const log = new FolderLog(signer, witness);
  grow(log, size, forkedAt);
  return log;
}

function grow(log: FolderLog, size: number, forkedAt = Number.POSITIVE_INFINITY): FolderLog {
  const from = log.entries.length;
  const text = (at: number) => `entry ${at}${at < forkedAt ? "" : " of a fork"}`;
  log.append(...Array.from({ length: size - from }, (_, place) => Buffer.from(text(from + place))));
  return log;
}

async function exported(
  path: string,
  logs: readonly FolderLog[],
  wrap = (folder: Folder): Folder => folder,
): Promise<readonly Exported[]> {
  const folder = await openFolder(path);
  try {
    return await exportLogs(sourceOf(...logs), wrap(folder), () => undefined);
  } finally {
    await folder.close();
  }
}

const partialsIn = async (folder: string) =>
  [...(await filesIn(folder)).keys()].filter((file) => file.includes(".p/")).map((file) => file.replace(/^log\//, ""));

describe("an exported log", () => {
  test.each([[[1, 2, 255, 256, 257]], [[300, 511, 512, 700]], [[65_535, 65_537]]])(
    "has at sizes %j exactly the files that its checkpoint names",
    async (sizes) => {
      const folder = newFolder();
      const log = logOf(0);
      let before = 0;
      for (const size of sizes) {
        grow(log, size);
        const outcome = { origin: FIRST.key.name, size, added: size - before, lost: 0, hasEnded: false };
        expect(await exported(folder, [log])).toEqual([outcome]);
        const plain = newFolder();
        await log.write(plain);
        const files = await filesIn(join(folder, "log"));
        for (const [file, bytes] of await filesIn(plain)) expect(files.get(file)?.equals(bytes), file).toBe(true);
        before = size;
      }
      expect(await wholeSize(join(folder, "log"), FIRST.key.vkey)).toBe(before);
      expect(await exported(folder, [log])).toMatchObject([{ size: before, added: 0 }]);
    },
  );

  test("keeps the partial files of its last two checkpoints, and those whose full ones are not older", async () => {
    const folder = newFolder();
    const log = logOf(0);
    for (const size of [200, 250, 300]) await exported(folder, [grow(log, size)]);
    const names = (n: number, widths: readonly number[]) =>
      widths.flatMap((width) => ["0", "entries"].map((level) => `tile/${level}/00${n}.p/${width}`));
    const top = ["tile/1/000.p/1"];
    expect(await partialsIn(folder)).toEqual([...names(0, [200, 250]), ...names(1, [44]), ...top].toSorted());
    await exported(folder, [grow(log, 310)]);
    expect(await partialsIn(folder)).toEqual([...names(1, [44, 54]), ...top].toSorted());
    expect(await wholeSize(join(folder, "log"), FIRST.key.vkey)).toBe(310);
  });

  test("takes the newer cosignatures of a checkpoint that it has", async () => {
    const folder = newFolder();
    const [bare, cosigned] = [new FolderLog(FIRST), new FolderLog(FIRST, witness)];
    await exported(folder, [grow(bare, 9)]);
    expect(await exported(folder, [grow(cosigned, 9)])).toMatchObject([{ size: 9, added: 0 }]);
    expect(await readFile(join(folder, "log/checkpoint"), "utf8")).toBe(await cosigned.checkpoint());
  });

  test("has the place of its generation, whatever its origin", async () => {
    const folder = newFolder();
    await exported(folder, [
      logOf(2, { signer: noteSigner("old.example/trust/log", 4) }),
      logOf(3, { signer: SECOND }),
    ]);
    expect((await readFile(join(folder, "log/checkpoint"), "utf8")).split("\n")[0]).toBe("old.example/trust/log");
    expect((await readFile(join(folder, "log/2/checkpoint"), "utf8")).split("\n")[0]).toBe("trust.example/log/2");
  });

  test("is written by one process at a time", async () => {
    const path = newFolder();
    const folder = await openFolder(path);
    await expect(openFolder(path)).rejects.toThrow(/another process is writing to/);
    await folder.close();
    await (await openFolder(path)).close();
  });
});

describe("an export that dies", () => {
  const dying = (steps: number) => {
    let left = steps;
    const step = async () => {
      if (left-- <= 0) throw new Error("dead");
    };
    return (folder: Folder): Folder => ({
      ...folder,
      async keep(path, bytes) {
        await step();
        await folder.keep(path, bytes);
      },
      async replace(path, bytes) {
        await step();
        await folder.replace(path, bytes);
      },
      async remove(path) {
        await step();
        await folder.remove(path);
      },
    });
  };

  test("leaves at each step a whole log, the old one or the new one, and the next one completes it", async () => {
    const log = logOf(500);
    const folder = newFolder();
    await exported(folder, [log]);
    await exported(folder, [grow(log, 520)]);
    grow(log, 1_300);
    const sizes: number[] = [];
    for (let steps = 0; sizes.at(-1) !== 1_300; steps++) {
      await expect(exported(folder, [log], dying(steps))).rejects.toThrow("dead");
      sizes.push(await wholeSize(join(folder, "log"), FIRST.key.vkey));
    }
    // Four bundles, their tiles, one tile of level 1, then the checkpoint: removing comes last.
    expect(sizes).toEqual([...Array.from({ length: 10 }, () => 520), 1_300]);
    await exported(folder, [log]);
    const again = newFolder();
    await exported(again, [log]);
    const files = await filesIn(folder);
    for (const [file, bytes] of await filesIn(again)) expect(files.get(file)?.equals(bytes), file).toBe(true);
  });
});

describe("an export is refused, and changes nothing,", () => {
  const shown = (log: FolderLog, other: FolderLog): FolderLog =>
    Object.assign(Object.create(FolderLog.prototype), log, { tree: log.tree, checkpoint: () => other.checkpoint() });

  test.each<[string, () => readonly FolderLog[], RegExp]>([
    ["where the log has forked", () => [logOf(900, { forkedAt: 399 })], /^FORK: .*the log signed both\ntrust.example/s],
    ["where it shows another tree of the same size", () => [logOf(400, { forkedAt: 0 })], /^FORK: two trees of 400/],
    ["where a shorter one has forked", () => [logOf(300, { forkedAt: 7 })], /^FORK: .*another root at size 300/],
    ["where the database has lost entries", () => [logOf(300)], /database has 300: 100 entries are missing there/],
    ["where it has lost all", () => [logOf(0)], /database has 0: 400 entries are missing there/],
    [
      "where the key is another one",
      () => [logOf(900, { signer: noteSigner("trust.example/log", 9) })],
      /is not one of/,
    ],
    ["where the log is another one", () => [logOf(900, { signer: SECOND })], /is not one of trust\.example\/log\/2/],
    [
      "where the tiles do not make the signed root",
      () => [shown(logOf(900), logOf(900, { forkedAt: 600 }))],
      /FORK|do not make the root/,
    ],
  ])("%s", async (_, logs, reason) => {
    const folder = newFolder();
    await exported(folder, [logOf(400)]);
    const files = async () => [...(await filesIn(folder))].map(([file, bytes]) => `${file} ${hash("sha256", bytes)}`);
    const before = await files();
    await expect(exported(folder, logs())).rejects.toThrow(reason);
    expect(await files()).toEqual(before);
  });

  test("not even in an empty folder, where the tiles do not make the signed root", async () => {
    const folder = newFolder();
    const log = shown(logOf(900), logOf(900, { forkedAt: 600 }));
    await expect(exported(folder, [log])).rejects.toThrow(/do not make the root that was signed for 900 entries/);
    expect([...(await filesIn(folder)).keys()]).toEqual([".lock"]);
  });

  test("but for files that are true, where an entry is not the one in the tree", async () => {
    const folder = newFolder();
    await exported(folder, [logOf(400)]);
    const log = logOf(900);
    log.entries[399] = Buffer.from("another one");
    await expect(exported(folder, [log])).rejects.toThrow(/^Entry 399 is not the one whose hash is in the signed tree/);
    expect(await wholeSize(join(folder, "log"), FIRST.key.vkey)).toBe(400);
    await expect(readFile(join(folder, "log/tile/entries/001"))).rejects.toThrow("ENOENT");
    expect(await exported(folder, [logOf(900)])).toMatchObject([{ size: 900, added: 500 }]);
  });

  test("but for files that are true, where a tile is not the one in the tree", async () => {
    const folder = newFolder();
    const log = logOf(900);
    const { tree } = log;
    const read = tree.tile.bind(tree);
    tree.tile = (id) => (id.level === 0 && id.n === 1 ? Buffer.alloc(8_192, 7) : read(id));
    await expect(exported(folder, [log])).rejects.toThrow(/^Tile 1 of level 0 is not the one whose hash is in the/);
    await expect(readFile(join(folder, "log/tile/0/001"))).rejects.toThrow("ENOENT");
  });

  test("where a file that it would write is there with other bytes", async () => {
    const folder = newFolder();
    await exported(folder, [logOf(400)]);
    const file = join(folder, "log/tile/0/002");
    await mkdir(dirname(file), { recursive: true });
    await writeFile(file, Buffer.alloc(8_192, 7));
    await expect(exported(folder, [logOf(900)])).rejects.toThrow(/^FORK: .*tile\/0\/002 has other bytes than the log/);
    expect((await readFile(file)).equals(Buffer.alloc(8_192, 7))).toBe(true);
    expect(await wholeSize(join(folder, "log"), FIRST.key.vkey)).toBe(400);
  });
});

describe("a log that has ended", () => {
  const next = () => logOf(3, { signer: SECOND });

  test("is exported as far as it goes, with the proof of the next one's first entry, which says so", async () => {
    const folder = newFolder();
    const log = next();
    expect(await exported(folder, [logOf(300), log])).toMatchObject([
      { origin: FIRST.key.name, size: 300, hasEnded: true },
      { origin: SECOND.key.name, size: 3, hasEnded: false },
    ]);
    const proof = parseProof(await readFile(join(folder, "log/2/entry/0.tlog-proof")));
    const policy = parsePolicy(`log ${SECOND.key.vkey}\nwitness w ${witness.key.vkey}\nquorum w\n`);
    expect(await verifyProof(proof, leafHash(Buffer.from("entry 0")), policy)).toMatchObject({ index: 0 });
    const first = await readFile(join(folder, "log/2/entry/0.tlog-proof"));
    await exported(folder, [logOf(300), grow(log, 9)]);
    expect(await readFile(join(folder, "log/2/entry/0.tlog-proof"))).toEqual(first);
  });

  test("keeps in the folder what the database has lost of it", async () => {
    const folder = newFolder();
    await exported(folder, [logOf(700)]);
    const before = await filesIn(join(folder, "log"));
    expect(await exported(folder, [logOf(300), next()])).toMatchObject([
      { size: 700, added: 0, lost: 400, hasEnded: true },
      { size: 3, added: 3 },
    ]);
    const after = await filesIn(join(folder, "log"));
    for (const [file, bytes] of before) expect(after.get(file)?.equals(bytes), file).toBe(true);
  });

  test("has to be the folder's own", async () => {
    const folder = newFolder();
    await exported(folder, [logOf(700)]);
    await expect(exported(folder, [logOf(300, { forkedAt: 5 }), next()])).rejects.toThrow(/^FORK/);
    await expect(readFile(join(folder, "log/2/checkpoint"))).rejects.toThrow("ENOENT");
  });

  test("does not go on in a database from before its end", async () => {
    const folder = newFolder();
    await exported(folder, [logOf(300), next()]);
    await expect(exported(folder, [logOf(900)])).rejects.toThrow(/has log 2 of the service, and the database knows 1/);
    await rename(join(folder, "log/2"), join(folder, "log/away"));
    expect(await exported(folder, [logOf(900)])).toMatchObject([{ size: 900, added: 600 }]);
  });
});
