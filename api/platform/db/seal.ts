import { createCipheriv, createDecipheriv, createSecretKey, randomBytes } from "node:crypto";
import type { Hex } from "../wallet.ts";

/** Encrypts payers' signatures at rest (AES-256-GCM; the key lives outside the database). */
export interface Seal {
  seal(signature: Hex, context: string): Buffer;
  /** Rejects bytes that were changed or moved to another row. */
  open(sealed: Buffer, context: string): Hex;
}

/** `context` is bound into every seal, so a sealed signature opens only in the row it was made for. */
export function createSeal(secret: Uint8Array): Seal {
  const key = createSecretKey(secret);
  return {
    seal(signature, context) {
      const iv = randomBytes(12);
      const cipher = createCipheriv("aes-256-gcm", key, iv).setAAD(Buffer.from(context));
      const body = Buffer.concat([cipher.update(Buffer.from(signature.slice(2), "hex")), cipher.final()]);
      return Buffer.concat([iv, cipher.getAuthTag(), body]);
    },
    open(sealed, context) {
      const decipher = createDecipheriv("aes-256-gcm", key, sealed.subarray(0, 12)).setAAD(Buffer.from(context));
      decipher.setAuthTag(sealed.subarray(12, 28));
      return `0x${Buffer.concat([decipher.update(sealed.subarray(28)), decipher.final()]).toString("hex")}`;
    },
  };
}
