import { hashTypedData, type LocalAccount, serializeTransaction, type TransactionSerializableEIP1559 } from "viem";
import { keccak256 } from "./keccak.ts";
import { accountOf, signDigest } from "./secp256k1.ts";
import type { Address, Hex } from "../wallet.ts";

/** What an account of ours signs, byte for byte as viem's `privateKeyToAccount` does, in a third of the time. */
export interface Account extends Pick<LocalAccount, "signTypedData"> {
  readonly address: Address;
  /** Signs a 32-byte digest: 65 bytes r, s, v. */
  readonly sign: (digest: Hex) => Hex;
  /** The signed transaction, ready to be broadcast. */
  readonly signTransaction: (transaction: TransactionSerializableEIP1559) => Hex;
}

/** The account of a 32-byte private key. Throws if there is no such key. */
export function createAccount(privateKey: Hex): Account {
  const sign = (digest: Hex) => signDigest(digest, privateKey);
  return {
    address: accountOf(privateKey),
    sign,
    signTypedData: async (typedData) => sign(hashTypedData(typedData)),
    signTransaction(transaction) {
      const signature = sign(keccak256(serializeTransaction(transaction)));
      const word = (at: number): Hex => `0x${signature.slice(at, at + 64)}`;
      return serializeTransaction(transaction, { r: word(2), s: word(66), yParity: signature.endsWith("1b") ? 0 : 1 });
    },
  };
}
