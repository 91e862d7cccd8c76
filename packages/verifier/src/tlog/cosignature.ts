import { concatBytes } from "./base64.ts";
import { type NoteSigner, signatureLine } from "./note.ts";
import { signedMessage, uint64 } from "./signed-message.ts";
import { NOTE_TYPE } from "./verifier-key.ts";

/**
 * Returns a cosigner's signature line for the text of a checkpoint (C2SP tlog-cosignature): at this time, it is the
 * largest tree of this log that the cosigner has seen, and consistent with all earlier ones.
 * @param seconds POSIX time
 * @returns the line with its newline, to be appended after the log's own
 * @throws Refusal `malformed_checkpoint`
 */
export async function cosign(text: string, { key, sign }: NoteSigner, seconds: number): Promise<string> {
  if (key.type === NOTE_TYPE.ed25519) throw new Error(`the key of ${key.name} is a log's, not a cosigner's`);
  return signatureLine(key, concatBytes(uint64(seconds), await sign(signedMessage(key, text, seconds))));
}
