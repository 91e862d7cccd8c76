// Lets the witness of siglog (crates.io) judge a log of ours. Building siglog takes a quarter of an hour, so run.sh does without it:
//
//   cargo install siglog --version 0.1.0 --locked
//   node bench/log-interop/siglog.ts ~/.cargo/bin
import { type ChildProcess, spawn } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { toBase64 } from "../../packages/verifier/src/tlog/base64.ts";
import { type NoteSigner, verifyNote } from "../../packages/verifier/src/tlog/note.ts";
import { parsePolicy, verifyCheckpoint } from "../../packages/verifier/src/tlog/policy.ts";
import { consistencyProof } from "../../packages/verifier/src/tlog/tree.ts";
import { freePort } from "../../scripts/embedded/ports.ts";
import { FolderLog } from "../../test/support/log/log-folder.ts";
import { noteSigner, witnessSigner } from "../../test/support/log/note-keys.ts";

const [programs = ""] = process.argv.slice(2);
const folder = await mkdtemp(join(tmpdir(), "siglog-"));
const running: ChildProcess[] = [];
async function start(name: string, settings: Readonly<Record<string, string>>): Promise<string> {
  const address = `127.0.0.1:${await freePort()}`;
  const env = { ...process.env, LISTEN_ADDR: address, ...settings };
  running.push(spawn(join(programs, name), { env, stdio: ["ignore", "ignore", "inherit"] }));
  return `http://${address}`;
}
/** Its key as siglog takes it: these seeds are one byte, 32 times. */
const secretOf = (key: { name: string; id: string }, seed: number) =>
  `PRIVATE+KEY+${key.name}+${key.id}+${Buffer.from([1, ...Buffer.alloc(32, seed)]).toString("base64")}`;
const expected = (what: string, found: unknown, wanted: unknown) => {
  if (found !== wanted) throw new Error(`${what}: ${found}, expected ${wanted}`);
};

async function ask(url: string, body: string): Promise<Response> {
  for (let tries = 1; ; tries++) {
    const answer = await fetch(url, { method: "POST", body }).catch(() => null);
    if (answer !== null) return answer;
    if (tries === 100) throw new Error(`${url} does not answer`);
    await sleep(200);
  }
}

const fill = (log: FolderLog, size: number, word = "entry") =>
  log.append(...Array.from({ length: size - log.tree.size }, (_, at) => Buffer.from(`${word} ${log.tree.size + at}`)));

/** What its witness makes of our checkpoints, and we of its signatures. */
async function judged(): Promise<void> {
  const ours = noteSigner("trust.example/log", 1);
  const theirs = noteSigner("witness.example/siglog", 5);
  const url = await start("witness", {
    DATABASE_URL: `sqlite:${folder}/witness.db?mode=rwc`,
    WITNESS_PRIVATE_KEY: secretOf(theirs.key, 5),
    WITNESS_LOGS: `trust.example/log=${ours.key.vkey}`,
  });
  const offer = async (log: FolderLog, old: number) => {
    const proof = await consistencyProof(old, log.tree.size, log.tree.read);
    const lines = proof.map((hash) => `${toBase64(hash)}\n`).join("");
    return ask(`${url}/add-checkpoint`, `old ${old}\n${lines}\n${await log.checkpoint()}`);
  };
  const log = new FolderLog(ours);
  let old = 0;
  for (const size of [255, 256, 257, 511, 512, 513, 600]) {
    fill(log, size);
    const answer = await offer(log, old);
    expected(`${old} to ${size}`, answer.status, 200);
    // Its answer has no newline at its end.
    await countsForNothing(`${await log.checkpoint()}${await answer.text()}\n`, ours, theirs);
    old = size;
  }
  const conflict = await offer(log, 5);
  expected("another old size", `${conflict.status} ${await conflict.text()}`, "409 600\n");
  const fork = new FolderLog(ours);
  fill(fork, 650, "fork");
  expected("a fork", (await offer(fork, 600)).status, 422);
  console.log("siglog's witness: our proofs hold from 0 to 600, a fork is refused");
  console.log("ours: its signature is one of type 0x01 without a time, no C2SP cosignature: it counts for nothing");
  const cosigned = new FolderLog(ours, witnessSigner("witness.example/w", 2));
  fill(cosigned, 700);
  const answer = await offer(cosigned, 600);
  console.log(`siglog's witness, of a checkpoint with a cosignature: ${answer.status} ${await answer.text()}`);
}

/** Its signature holds, and is no cosignature. */
async function countsForNothing(note: string, ours: NoteSigner, theirs: NoteSigner): Promise<void> {
  const { signatures } = await verifyNote(note, [theirs.key]);
  expected("the time of its signature", signatures[0]?.seconds, null);
  const witness = witnessSigner(theirs.key.name, 5).key.vkey;
  const policy = parsePolicy(`log ${ours.key.vkey}\nwitness w ${witness}\nquorum w\n`);
  const refused = await verifyCheckpoint(note, policy).catch(({ code }: { code: string }) => code);
  expected("as a cosignature", refused, "quorum_not_met");
}

try {
  await judged();
} finally {
  for (const child of running) child.kill();
  await rm(folder, { recursive: true, force: true });
}
