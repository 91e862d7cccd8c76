import { randomBytes } from "node:crypto";
import { existsSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Hex } from "viem";
import { generatePrivateKey, privateKeyToAddress } from "viem/accounts";

/** The secrets of an embedded installation. PostgreSQL's passwords lie with its data. */
export interface Keys {
  /** 32 bytes, base64url: the Ed25519 key that signs documents. */
  readonly signingKey: string;
  /** 32 bytes, base64url: the key that encrypts payers' signatures. */
  readonly sealingKey: string;
  /** Sends the settlements. */
  readonly facilitatorPrivateKey: Hex;
  /** Owns the address that payments go to. */
  readonly payToPrivateKey: Hex;
}

/** The installation's secrets, generated when it is new and the same ever after. */
export function loadKeys(dataDirectory: string): Keys {
  const file = join(dataDirectory, "keys.json");
  if (existsSync(file)) return JSON.parse(readFileSync(file, "utf8"));
  const keys: Keys = {
    signingKey: randomBytes(32).toString("base64url"),
    sealingKey: randomBytes(32).toString("base64url"),
    facilitatorPrivateKey: generatePrivateKey(),
    payToPrivateKey: generatePrivateKey(),
  };
  writeFileSync(`${file}.new`, `${JSON.stringify(keys, null, 2)}\n`, { mode: 0o600 });
  renameSync(`${file}.new`, file);
  return keys;
}

export const payToAddress = (keys: Keys): Hex => privateKeyToAddress(keys.payToPrivateKey);
export const facilitatorAddress = (keys: Keys): Hex => privateKeyToAddress(keys.facilitatorPrivateKey);
