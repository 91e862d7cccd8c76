import { createHash } from "node:crypto";
import type { Address } from "../platform/wallet.ts";
import { day } from "../platform/page/html.ts";

const CUPS = [
  ["    ( (", "     ) )", "  ........", "  |      |]", "  \\      /", "   `----'"],
  ["     ~ ~ ~", "    _______", "   |       |_", "   | .402. | |", "   |       |_|", "   '-------'"],
  [
    "      )  (",
    "     (   ) )",
    "      ) ( (",
    "    _______)_",
    " .-'---------|",
    "( C|/\\/\\/\\/\\/|",
    " '-./\\/\\/\\/\\/|",
  ],
  ["    {", "  {   }", "   }_{ __{", "  (       )}", "  |`-...-'|.", "  |       | )", "   `-...-'"],
] as const;

const FORTUNES = [
  "The next 402 you meet will be a fair one.",
  "A price ceiling today spares an apology tomorrow.",
  "Somebody far away is about to verify you.",
  "Read the recipient twice, sign once.",
  "Your nonce is unlike any other. So are you.",
  "What is settled stays settled, and you may rest.",
  "A short window keeps the draft out.",
  "Patience: the block you wait for is two seconds away.",
  "An invoice without terms is only a wish.",
  "You will be asked for a receipt, and you will have one.",
] as const;

const RANKS = [
  "Steward",
  "Keeper",
  "Warden",
  "Marshal",
  "Chancellor",
  "Navigator",
  "Cartographer",
  "Archivist",
] as const;
const REALMS = [
  "the Exact Amount",
  "Unspent Nonces",
  "the Short Window",
  "the Quiet Facilitator",
  "Six Decimals",
  "the Second Espresso",
  "Fair Prices",
  "the Final Block",
] as const;

/** Picks one of a list, always the same for the same seed. */
function pick<Value>(list: readonly Value[], seed: string): Value {
  const number = createHash("sha256").update(seed).digest().readUInt32BE(0);
  return list[number % list.length] as Value;
}

export const cup = (receipt: string): string => pick(CUPS, `cup|${receipt}`).join("\n");

export const fortune = (receipt: string): string => pick(FORTUNES, `fortune|${receipt}`);

/** A wallet keeps one title per day (UTC). */
export const title = (wallet: Address, now: Date): string => {
  const seed = `${wallet}|${day(now)}`;
  return `${pick(RANKS, `rank|${seed}`)} of ${pick(REALMS, `realm|${seed}`)}`;
};
