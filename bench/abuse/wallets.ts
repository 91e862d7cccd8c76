import { concat, type Hex, numberToHex, pad } from "viem";

/** Slot 0 of a wallet; it burns its gas while this is set. */
export const FLAG = pad("0x0");
export const SET = pad("0x1");
export const CLEAR = pad("0x0");

/** Returns ERC-1271's yes. */
const YES = concat(["0x7f", "0x1626ba7e", `0x${"00".repeat(28)}`, "0x60005260206000f3"]);

/**
 * An ERC-1271 wallet in machine code that takes every signature after so many rounds of about 60 gas, so that an
 * estimate allows as much; once its flag is set, it burns whatever it is given and takes none.
 */
export function drainingWallet(rounds: number): Hex {
  // PUSH1 0; SLOAD; PUSH1 burn; JUMPI; PUSH3 rounds; loop: JUMPDEST; the hash of nothing, dropped; one less; while left
  const start = 6;
  const loop = numberToHex(start + 4, { size: 1 });
  const think = concat([
    "0x62",
    numberToHex(rounds, { size: 3 }),
    "0x5b6000600020506001900380",
    "0x60",
    loop,
    "0x5750",
  ]);
  const burn = numberToHex(start + (think.length - 2) / 2 + (YES.length - 2) / 2, { size: 1 });
  return concat(["0x600054", "0x60", burn, "0x57", think, YES, "0x5b60", burn, "0x56"]);
}
