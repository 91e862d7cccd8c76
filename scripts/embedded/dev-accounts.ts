import { toHex } from "viem";
import { type HDAccount, mnemonicToAccount } from "viem/accounts";

/** Known to everyone: whoever sends real money to these accounts loses it. */
export const DEV_MNEMONIC = "test test test test test test test test test test test junk";

/** One of the ten well-known development accounts (0 to 9). */
export const devAccount = (addressIndex: number): HDAccount => mnemonicToAccount(DEV_MNEMONIC, { addressIndex });

export const DEV_ACCOUNTS: readonly HDAccount[] = Array.from({ length: 10 }, (_, index) => devAccount(index));

/** The account's private key, for a banner or another program's environment. */
export function privateKeyOf(account: HDAccount): `0x${string}` {
  const key = account.getHdKey().privateKey;
  if (key === null) throw new Error("This account was made without a private key.");
  return toHex(key);
}
