// Writes a log of ours to the folder it is run in: what run.sh lets programs read that are not ours.
import { writeFile } from "node:fs/promises";
import { consistencyProof } from "../../packages/verifier/src/tlog/tree.ts";
import { FolderLog } from "../../test/support/log/log-folder.ts";
import { noteSigner, witnessSigner } from "../../test/support/log/note-keys.ts";

const OLD_SIZE = 65_535;
const SIZE = 70_000;
const signer = noteSigner("trust.example/log", 1);
const witness = witnessSigner("witness.example/w", 2);
const log = new FolderLog(signer, witness);
const entries = Array.from({ length: SIZE }, (_, at) => Buffer.from(`entry ${at}`));

log.append(...entries.slice(0, OLD_SIZE));
await writeFile("old.txt", await log.checkpoint());
log.append(...entries.slice(OLD_SIZE));
await log.write("files");
await writeFile("vkey.txt", signer.key.vkey);
await writeFile("wkey.txt", witness.key.vkey);
await writeFile("65537.tlog-proof", await log.proof(65_537));
const proof = await consistencyProof(OLD_SIZE, SIZE, log.tree.read);
await writeFile("consistency.txt", proof.map((hash) => `${Buffer.from(hash).toString("base64")}\n`).join(""));
