import { expect, test } from "vitest";
import { readWallet } from "../../../api/platform/wallet.ts";

const CHECKSUMMED = "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed";
const wallet = CHECKSUMMED.toLowerCase();
const digits = CHECKSUMMED.slice(2);

test.each([
  CHECKSUMMED,
  wallet,
  `0x${digits.toUpperCase()}`,
  `eip155:8453:${CHECKSUMMED}`,
  `did:pkh:eip155:8453:${wallet}`,
])("%s names a wallet", (text) => expect(readWallet(text)).toEqual({ wallet }));

test.each<[string, RegExp]>([
  [CHECKSUMMED.replace("aA", "Aa"), /checksum/],
  [`eip155:8453:${CHECKSUMMED.replace("7Ef", "7ef")}`, /checksum/],
  [`did:pkh:eip155:8453:${CHECKSUMMED.replace("aAe", "aae")}`, /checksum/],
  [`eip155:1:${wallet}`, /on eip155:8453; this one is on eip155:1/],
  [`did:pkh:eip155:84532:${wallet}`, /this one is on eip155:84532/],
  [`did:pkh:${wallet}`, /0x and 40 hex digits/],
  [`did:web:example.com`, /0x and 40 hex digits/],
  [wallet.slice(0, -1), /0x and 40 hex digits/],
  ["", /0x and 40 hex digits/],
])("%s does not", (text, why) => expect(readWallet(text)).toEqual({ malformed: expect.stringMatching(why) }));
