import { createCipheriv, createDecipheriv, createSecretKey, type KeyObject, randomBytes } from "node:crypto";
import type { Hex } from "../wallet.ts";

/** Encrypts payers' signatures at rest (AES-256-GCM). The keys are kept outside the database. */
export interface Seal {
  seal(signature: Hex, context: string): Buffer;
  /** Rejects bytes that were changed or moved to another row, or sealed with an unknown key. */
  open(sealed: Buffer, context: string): Hex;
  /** Encrypts it again under the current key; null if it already is. */
  renew(sealed: Buffer, context: string): Buffer | null;
}

/**
 * Creates the seal. `context` is bound into every sealed signature, so it opens only in the row it was made for.
 * @param retired keys that open earlier data and are not used for new data
 */
export function createSeal(secret: Uint8Array, retired: readonly Uint8Array[] = []): Seal {
  const current = createSecretKey(secret);
  const keys = [current, ...retired.map((one) => createSecretKey(one))];
  const seal = (signature: Hex, context: string): Buffer => {
    const iv = randomBytes(12);
    const cipher = createCipheriv("aes-256-gcm", current, iv).setAAD(Buffer.from(context));
    const body = Buffer.concat([cipher.update(Buffer.from(signature.slice(2), "hex")), cipher.final()]);
    return Buffer.concat([iv, cipher.getAuthTag(), body]);
  };
  const open = (sealed: Buffer, context: string): { readonly signature: Hex; readonly key: KeyObject } => {
    for (const key of keys) {
      const signature = openWith(key, sealed, context);
      if (signature !== null) return { signature, key };
    }
    throw new Error("no sealing key opens the stored data, which was changed, moved, or sealed with another key");
  };
  return {
    seal,
    open: (sealed, context) => open(sealed, context).signature,
    renew(sealed, context) {
      const { signature, key } = open(sealed, context);
      return key === current ? null : seal(signature, context);
    },
  };
}

/** Opens a seal; null if this key did not make it for this context. */
function openWith(key: KeyObject, sealed: Buffer, context: string): Hex | null {
  const decipher = createDecipheriv("aes-256-gcm", key, sealed.subarray(0, 12)).setAAD(Buffer.from(context));
  try {
    decipher.setAuthTag(sealed.subarray(12, 28));
    return `0x${Buffer.concat([decipher.update(sealed.subarray(28)), decipher.final()]).toString("hex")}`;
  } catch {
    return null;
  }
}
