import { toHex } from "viem";
import { type HDAccount, hdKeyToAccount, mnemonicToAccount } from "viem/accounts";

/** These words are public, so real money sent to these accounts is lost. */
export const DEV_MNEMONIC = "test test test test test test test test test test test junk";

// Deriving the seed from the words is slow by design, so do it once for all accounts.
const PARENT = mnemonicToAccount(DEV_MNEMONIC, { path: "m/44'/60'/0'/0" }).getHdKey();
const derive = (index: number): HDAccount =>
  // viem's type requires a path from the master key, but this one starts at the parent.
  hdKeyToAccount(PARENT, { path: `m/${index}` as "m/44'/60'/" });

/** The ten well-known development accounts. */
export const DEV_ACCOUNTS: readonly HDAccount[] = Array.from({ length: 10 }, (_, index) => derive(index));

/** One of the ten well-known development accounts (0 to 9). */
export function devAccount(index: number): HDAccount {
  const account = DEV_ACCOUNTS[index];
  if (account === undefined) throw new Error(`The development accounts are numbered 0 to 9; got ${index}.`);
  return account;
}

/** Returns the account's private key, for a banner or another program's environment. */
export function privateKeyOf(account: HDAccount): `0x${string}` {
  const key = account.getHdKey().privateKey;
  if (key === null) throw new Error("This account was made without a private key.");
  return toHex(key);
}
