import { createHmac, timingSafeEqual } from "node:crypto";
import type { Network } from "../platform/networks.ts";

/** Of a nonce in bytes: when it was issued (milliseconds since 1970), chance, and our proof of both. */
const TIME = 6;
const CHANCE = 12;
const PROOF = 16;
const FORM = new RegExp(`^[0-9a-f]{${2 * (TIME + CHANCE + PROOF)}}$`);

/** How many bytes of chance a nonce needs. */
export const NONCE_CHANCE_BYTES = CHANCE;

/**
 * Nonces that prove themselves: whatever number of challenges is asked for, nothing is stored before one comes back
 * signed. Every process with the same secret takes those of the others.
 */
export interface Nonces {
  readonly issue: (network: Network, at: Date, chance: Uint8Array) => string;
  /** When it was issued; null if it is not one of ours for this network. */
  readonly issuedAt: (network: Network, nonce: string) => Date | null;
}

/**
 * @param secret known to the processes of this service alone
 * @param uri what is signed in to: a nonce for another address of the service proves nothing
 */
export function createNonces(secret: Uint8Array, uri: string): Nonces {
  const prove = (network: Network, body: Buffer): Buffer =>
    createHmac("sha256", secret).update(`sign-in-with-x|${uri}|${network}|`).update(body).digest().subarray(0, PROOF);
  return {
    issue(network, at, chance) {
      const body = Buffer.alloc(TIME + CHANCE);
      body.writeUIntBE(at.getTime(), 0, TIME);
      body.set(chance.subarray(0, CHANCE), TIME);
      return Buffer.concat([body, prove(network, body)]).toString("hex");
    },
    issuedAt(network, nonce) {
      if (!FORM.test(nonce)) return null;
      const bytes = Buffer.from(nonce, "hex");
      const body = bytes.subarray(0, TIME + CHANCE);
      if (!timingSafeEqual(prove(network, body), bytes.subarray(TIME + CHANCE))) return null;
      return new Date(body.readUIntBE(0, TIME));
    },
  };
}
