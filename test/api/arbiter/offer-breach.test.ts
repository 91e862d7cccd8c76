import fc from "fast-check";
import { afterAll, beforeEach, describe, expect, test } from "vitest";
import { NETWORKS } from "../../../api/platform/networks.ts";
import { NETWORKS_V2 } from "../../../packages/verifier/src/verdict/v2/offer-breach.ts";
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
  REFUNDED,
  RELEASED,
  receipted,
  SEPOLIA,
  showDocument,
  TX,
  verdictLines,
} from "../../support/arbiter/breach.ts";
import type { SignedTerms } from "../../support/arbiter/signed-terms.ts";
import { factsNamed, judged, startSite } from "../../support/arbiter/site.ts";

const site = await startSite();
afterAll(() => site.close());
beforeEach(() => showDocument(site));

/** No transaction is read until the offer and the receipt are known to be the seller's. */
const UNREAD = ["settlement unknown not_read", "time unknown not_read"];

test.each(REFUNDED)("A proven breach is refunded: %s", async (_, given, lines) => {
  const evidence = await evidenceOn(site, await given());
  expect(verdictLines(evidence)).toEqual(["refund", ...lines]);
  expect(evidence.transfer).toMatchObject({ network: BASE.id, transaction: TX, logIndex: 7 });
});

test.each(RELEASED)("A payment as offered is released: %s", async (_, given) => {
  const evidence = await evidenceOn(site, await given());
  expect([evidence.verdict, ...judged(evidence).filter((line) => !/ true /.test(line))]).toEqual(["release"]);
  expect(evidence.transfer).toMatchObject({ network: BASE.id, transaction: TX, logIndex: 7 });
});

describe("unproven breach", () => {
  test.each(ESCALATED)("%s: the claim escalates and decides no transfer", async (_, given, lines) => {
    const evidence = await evidenceOn(site, await given());
    const unread = factsNamed(evidence, "transaction").length === 0 ? UNREAD : [];
    expect(verdictLines(evidence)).toEqual(["escalate", ...lines, ...unread]);
    expect(evidence.transfer).toBeUndefined();
  });

  test("A transfer that another verdict has decided escalates and names that verdict", async () => {
    const { transfer } = await evidenceOn(site, { chain: { [BASE.id]: paidBy(DEAR) } });
    const verdict = "0123456789abcdef0123456789abcdef";
    const again = transfer?.decidedBefore(verdict);
    expect(again && verdictLines(again)).toEqual(["escalate", "settlement unknown decided_before"]);
    expect(again?.transfer).toBeUndefined();
    expect(again && factsNamed(again, "decided_before")).toEqual([{ fact: "decided_before", verdict }]);
  });
});

test("Version 2 lists the service's networks", () => {
  const known = Object.values(NETWORKS).map(({ id, isTest }) => [id, { isTest }]);
  expect(NETWORKS_V2).toEqual(Object.fromEntries(known));
});

describe("forged offers and receipts", () => {
  /** The signed object with one byte of its JSON replaced, or null if the result is not JSON. */
  function changed(signed: SignedTerms, at: number, byte: number): SignedTerms | null {
    const bytes = Buffer.from(JSON.stringify(signed));
    bytes[at % bytes.length] = byte;
    try {
      return JSON.parse(bytes.toString());
    } catch {
      return null;
    }
  }

  /** The verdict, or `refused` if the claim is not accepted at all. */
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

  test("Changing one byte of an offer or a receipt never turns an escalate into a refund", async () => {
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

  test("Changing one byte never turns a release into a refund, in either format", async () => {
    const cases: readonly Case[] = [{}, { offer: byHost(), receipt: byHost(RECEIPT) }];
    await fc.assert(
      fc.asyncProperty(fc.constantFrom(...cases), anyByte, async (one, change) => {
        const given = await withByte(one, change);
        if (given !== null) expect(await verdictOn(given)).not.toBe("refund");
      }),
      { numRuns: 100 },
    );
  });

  test("Changing one signed byte of a true breach leaves no decision", async () => {
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
   * Returns whether both are the same signed object. The case of hex digits and the unused trailing bits of base64url
   * are not signed.
   */
  const same = (one: Case["receipt"], other: Case["receipt"]): boolean => canonical(one) === canonical(other);

  function canonical(signed: Case["receipt"]): string {
    const { signature = "" } = signed ?? {};
    const [header, payload, bytes] = signature.split(".");
    return bytes === undefined
      ? JSON.stringify({ ...signed, signature: signature.toLowerCase() })
      : JSON.stringify({ ...signed, signature: [header, payload, Buffer.from(bytes, "base64url").toString("hex")] });
  }
});
