import { createPrivateKey, createPublicKey, sign } from "node:crypto";
import type { NoteSigner } from "../../../packages/verifier/src/tlog/note.ts";
import { NOTE_TYPE, verifierKey } from "../../../packages/verifier/src/tlog/verifier-key.ts";

const PKCS8 = Buffer.from("302e020100300506032b657004220420", "hex");

/** An Ed25519 signer of notes whose seed is one byte, 32 times: a log's by default. */
export function noteSigner(name: string, seed: number, type: 0x01 | 0x04 = NOTE_TYPE.ed25519): NoteSigner {
  const der = Buffer.concat([PKCS8, Buffer.alloc(32, seed)]);
  const privateKey = createPrivateKey({ key: der, format: "der", type: "pkcs8" });
  const publicKey = createPublicKey(privateKey).export({ format: "der", type: "spki" }).subarray(-32);
  return { key: verifierKey(name, type, publicKey), sign: (message) => sign(null, message, privateKey) };
}

/** The same for a witness. */
export const witnessSigner = (name: string, seed: number): NoteSigner => noteSigner(name, seed, NOTE_TYPE.cosignature);
