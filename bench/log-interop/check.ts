// Checks with our verifier what others made: a proof of a log in Go, and our checkpoint with a cosignature of a Python witness.
import { readFile } from "node:fs/promises";
import { leafHash } from "../../packages/verifier/src/tlog/hash.ts";
import { parsePolicy, verifyCheckpoint, witnessedAt } from "../../packages/verifier/src/tlog/policy.ts";
import { parseProof, verifyProof } from "../../packages/verifier/src/tlog/tlog-proof.ts";

const proof = parseProof(await readFile("go.tlog-proof"));
const policy = parsePolicy(await readFile("go-policy.txt"));
const { log, index, checkpoint } = await verifyProof(proof, leafHash(Buffer.from("foreign 600")), policy);
console.log(`ours: entry ${index} of ${checkpoint.size} is in ${log}`);

const cosigned = await verifyCheckpoint(await readFile("cosigned.txt"), parsePolicy(await readFile("policy.txt")));
console.log(`ours: ${cosigned.checkpoint.size} entries, cosigned by ${cosigned.witnesses.map(({ name }) => name)}`);

const pq = parsePolicy(await readFile("pq-policy.txt"));
for (const file of ["pq-cosigned.txt", "pq-untimed.txt"]) {
  const { witnesses } = await verifyCheckpoint(await readFile(file), pq);
  console.log(`ours: ${file} is cosigned by ${witnesses.map((one) => `${one.name} on ${witnessedAt(one)}`)}`);
}
const moved = (await readFile("pq-cosigned.txt", "utf8")).replace("witness.example/pq", "witness.example/qp");
const refused = await verifyCheckpoint(moved, pq).catch(({ code }: { code: string }) => code);
if (refused !== "quorum_not_met") throw new Error(`a cosignature under another name: ${JSON.stringify(refused)}`);
