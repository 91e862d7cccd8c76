import { createPublicKey, sign } from "node:crypto";
import { signingKey } from "../../api/platform/signing/keys.ts";
import type { NoteSigner } from "../../packages/verifier/src/tlog/note.ts";
import { NOTE_TYPE, verifierKey } from "../../packages/verifier/src/tlog/verifier-key.ts";

/** Creates a signer for a log or a witness, with the Ed25519 key of these 32 bytes. @throws Refusal `malformed_vkey` for a bad name */
export async function noteSigner(name: string, role: "log" | "witness", seed: Uint8Array): Promise<NoteSigner> {
  const { privateKey } = await signingKey(seed);
  const { x = "" } = createPublicKey(privateKey).export({ format: "jwk" });
  const type = role === "log" ? NOTE_TYPE.ed25519 : NOTE_TYPE.cosignature;
  return {
    key: verifierKey(name, type, Buffer.from(x, "base64url")),
    sign: (message) => sign(null, message, privateKey),
  };
}
