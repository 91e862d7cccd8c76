/** A proof's parts, read with nothing of ours: C2SP tlog-proof, line by line. */
export function readProof(text: string) {
  const [head = "", ...rest] = text.split("\n\n");
  const [magic, extra = "", index = "", ...hashes] = head.split("\n");
  return {
    magic,
    entry: Buffer.from(extra.replace(/^extra /, ""), "base64"),
    index: Number(index.replace(/^index /, "")),
    hashes: hashes.map((hash) => Buffer.from(hash, "base64")),
    checkpoint: rest.join("\n\n"),
  };
}
