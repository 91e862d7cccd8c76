import { bytesToHex } from "viem";
import { mnemonicToAccount, privateKeyToAddress } from "viem/accounts";
import type { Hex } from "../wallet.ts";

/** The development mnemonics of Foundry and Hardhat, Ganache, and Truffle, each with its number of default accounts. */
const MNEMONICS = [
  "test test test test test test test test test test test junk",
  "myth like bonus scare over problem client lizard pioneer submit female collect",
  "candy maple cake sugar pudding cream honey rich smooth crumble sweet treat",
];
const ACCOUNTS_EACH = 20;

let published: ReadonlySet<string> | null = null;

/** Whether development tools print this private key, or the key of this address. */
export const isPublishedKey = (keyOrAddress: string | null): boolean =>
  keyOrAddress !== null && developmentKeys().has(keyOrAddress.toLowerCase());

/** Returns the address of a private key, in lower case. */
export const addressOfKey = (key: string): string => privateKeyToAddress(key as Hex).toLowerCase();

/** Derives the keys on first use, because that takes longer than all other checks together. */
function developmentKeys(): ReadonlySet<string> {
  published ??= new Set(
    MNEMONICS.flatMap((mnemonic) =>
      Array.from({ length: ACCOUNTS_EACH }, (_, addressIndex) => {
        const account = mnemonicToAccount(mnemonic, { addressIndex });
        const key = account.getHdKey().privateKey;
        return key === null ? [] : [bytesToHex(key), account.address.toLowerCase()];
      }).flat(),
    ),
  );
  return published;
}
