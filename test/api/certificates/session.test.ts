import { expect, test } from "vitest";
import { type Door, isPassed, type Session, UNSERVED } from "../../../api/certificates/sessions/session.ts";
import { PASSING } from "../../support/certificates/samples.ts";

const AT = new Date("2026-11-24T12:00:00.000Z");
const nonce = `0x${"01".repeat(32)}` as const;

const session = (paid: Door | null, shown: readonly Door[], tokenUsed: boolean): Session => ({
  id: PASSING.id,
  product: "scam",
  wallet: PASSING.wallet,
  entry: {
    payment: { network: "eip155:8453", asset: PASSING.wallet, payer: PASSING.wallet, nonce },
    version: "v2",
    settlement: PASSING.settlement,
  },
  baitFirst: false,
  decoys: { token: PASSING.wallet, wallet: PASSING.wallet },
  startedAt: AT,
  lapsesAt: AT,
  served: {
    token: { ...UNSERVED, bait: shown.includes("token") ? AT : null },
    wallet: { ...UNSERVED, bait: shown.includes("wallet") ? AT : null },
  },
  control: paid === null ? null : { nonce, transaction: nonce, door: paid },
  verdict: null,
  tokenUsed,
  tokenShared: false,
  sender: Buffer.alloc(32),
});

test.each([
  ["paid nothing", session(null, ["token", "wallet"], true), false],
  ["paid and was shown the bait with the token", session("token", ["token"], true), true],
  ["paid with the token, which was shown no bait", session("token", ["wallet"], true), false],
  ["paid without the token, which was shown the bait", session("wallet", ["token"], true), false],
  ["paid and was shown the bait without the token, and uses none", session("wallet", ["wallet"], false), true],
  ["paid and was shown the bait without the token, but uses one", session("wallet", ["wallet"], true), false],
  ["paid without the token, and was shown no bait", session("wallet", [], false), false],
])("a wallet that %s has passed or not", (_, played, passed) => expect(isPassed(played)).toBe(passed));
