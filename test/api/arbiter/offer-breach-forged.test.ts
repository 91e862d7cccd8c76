import fc from "fast-check";
import { afterAll, beforeEach, expect, test } from "vitest";
import {
  BASE,
  byHost,
  type Case,
  DEAR,
  ESCALATED,
  evidenceOn,
  offered,
  paidBy,
  RECEIPT,
  receipted,
  SEPOLIA,
  showDocument,
} from "../../support/arbiter/breach.ts";
import type { SignedTerms } from "../../support/arbiter/signed-terms.ts";
import { startSite } from "../../support/arbiter/site.ts";

const site = await startSite();
afterAll(() => site.close());
beforeEach(() => showDocument(site));

/** The signed object with one byte of its JSON replaced, or null if that is no JSON any more. */
function changed(signed: SignedTerms, at: number, byte: number): SignedTerms | null {
  const bytes = Buffer.from(JSON.stringify(signed));
  bytes[at % bytes.length] = byte;
  try {
    return JSON.parse(bytes.toString());
  } catch {
    return null;
  }
}

/** The verdict; `refused` if the claim is not taken in at all. */
const verdictOn = (given: Case): Promise<string> =>
  evidenceOn(site, given).then(
    ({ verdict }) => verdict,
    () => "refused",
  );

const anyByte = fc.record({
  of: fc.constantFrom("offer" as const, "receipt" as const),
  at: fc.nat({ max: 2_000 }),
  byte: fc.integer({ min: 0x20, max: 0x7e }),
});

/** Changes one byte of the offer or the receipt of a case. */
async function withByte(given: Case, { of, at, byte }: { of: "offer" | "receipt"; at: number; byte: number }) {
  const whole = { offer: given.offer ?? (await offered()), receipt: given.receipt ?? (await receipted()) };
  const other = changed(whole[of], at, byte);
  return other && { ...given, ...whole, [of]: other };
}

const ALL_BREACHED = {
  [BASE.id]: paidBy(DEAR),
  [SEPOLIA.id]: { outcome: "not_found" },
} as const satisfies Case["chain"];

test("no single byte changed in an offer or a receipt makes a refund of an escalate", async () => {
  const cases = await Promise.all(
    ESCALATED.filter(([title]) => !/^no receipt|own offer|the other format/.test(title)).map(([, given]) => given()),
  );
  await fc.assert(
    fc.asyncProperty(fc.integer({ min: 0, max: cases.length - 1 }), anyByte, async (number, change) => {
      const given = await withByte(cases[number] as Case, change);
      if (given !== null) expect(await verdictOn(given)).not.toBe("refund");
    }),
    { numRuns: 300 },
  );
});

test("nor of a release, in either format", async () => {
  const cases: readonly Case[] = [{}, { offer: byHost(), receipt: byHost(RECEIPT) }];
  await fc.assert(
    fc.asyncProperty(fc.constantFrom(...cases), anyByte, async (one, change) => {
      const given = await withByte(one, change);
      if (given !== null) expect(await verdictOn(given)).not.toBe("refund");
    }),
    { numRuns: 100 },
  );
});

test("every byte of what is signed counts: changed, it decides nothing even where the payment is a breach", async () => {
  const chain = ALL_BREACHED;
  const cases: readonly Case[] = [
    { offer: await offered(), receipt: await receipted(), chain },
    { offer: byHost(), receipt: byHost(RECEIPT), chain },
  ];
  for (const one of cases) expect(await verdictOn(one)).toBe("refund");
  await fc.assert(
    fc.asyncProperty(fc.constantFrom(...cases), anyByte, async (one, change) => {
      const given = await withByte(one, change);
      if (given === null || same(given[change.of], one[change.of])) return;
      expect(["refused", "escalate"]).toContain(await verdictOn(given as Case));
    }),
    { numRuns: 200 },
  );
});

/**
 * Whether two say the same: hex in either case, and the bits of base64url behind the last byte, are no part of what is
 * signed.
 */
const same = (one: Case["receipt"], other: Case["receipt"]): boolean => canonical(one) === canonical(other);

function canonical(signed: Case["receipt"]): string {
  const { signature = "" } = signed ?? {};
  const [header, payload, bytes] = signature.split(".");
  return bytes === undefined
    ? JSON.stringify({ ...signed, signature: signature.toLowerCase() })
    : JSON.stringify({ ...signed, signature: [header, payload, Buffer.from(bytes, "base64url").toString("hex")] });
}
