import { randomBytes } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { Hex } from "viem";
import { generatePrivateKey, privateKeyToAddress } from "viem/accounts";
import { createDemoMerchant } from "../../api/escrow/demo/merchant.ts";
import { replaceFile } from "./replace-file.ts";

/** The secrets of an embedded installation. PostgreSQL's passwords are stored with its data. */
export interface Keys {
  /** 32 bytes, base64url: the Ed25519 key that signs documents. */
  readonly signingKey: string;
  /** 32 bytes, base64url: the key of the local witness. */
  readonly witnessKey: string;
  /** 32 bytes, base64url: the key that encrypts payers' signatures. */
  readonly sealingKey: string;
  /** 32 bytes, base64url: the keys of decoy addresses derive from it. */
  readonly decoySeed: string;
  /** Sends the settlements. */
  readonly facilitatorPrivateKey: Hex;
  /** Owns the address that receives payments. */
  readonly payToPrivateKey: Hex;
  /** Decides the escrow's payments. */
  readonly arbiterPrivateKey: Hex;
  /** Pays in exams of sellers. */
  readonly examPrivateKey: Hex;
}

/** Returns the installation's secrets, which are generated on first use and then never change. */
export function loadKeys(dataDirectory: string): Keys {
  const file = join(dataDirectory, "keys.json");
  if (existsSync(file)) return JSON.parse(readFileSync(file, "utf8"));
  const secret = () => randomBytes(32).toString("base64url");
  const keys: Keys = {
    signingKey: secret(),
    witnessKey: secret(),
    sealingKey: secret(),
    decoySeed: secret(),
    facilitatorPrivateKey: generatePrivateKey(),
    payToPrivateKey: generatePrivateKey(),
    arbiterPrivateKey: generatePrivateKey(),
    examPrivateKey: generatePrivateKey(),
  };
  replaceFile(file, `${JSON.stringify(keys, null, 2)}\n`, 0o600);
  return keys;
}

export const payToAddress = (keys: Keys): Hex => privateKeyToAddress(keys.payToPrivateKey);
export const facilitatorAddress = (keys: Keys): Hex => privateKeyToAddress(keys.facilitatorPrivateKey);
export const examAddress = (keys: Keys): Hex => privateKeyToAddress(keys.examPrivateKey);
export const arbiterAddress = (keys: Keys): Hex => privateKeyToAddress(keys.arbiterPrivateKey);
export const demoMerchantAddress = (keys: Keys): Hex =>
  createDemoMerchant(Buffer.from(keys.decoySeed, "base64url")).address;
