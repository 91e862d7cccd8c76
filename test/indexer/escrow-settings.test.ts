import pg from "pg";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { chooseDeployment } from "../../indexer/choose-deployment.ts";
import { chooseEscrowDeployment } from "../../indexer/escrows/choose-deployment.ts";
import { type IndexerSettings, parseSettings } from "../../indexer/settings.ts";
import { freshDatabase } from "../support/service/database.ts";

const GOOD = {
  DATABASE_URL: "postgres://indexer@localhost/trust",
  BASE_RPC_URL: "http://127.0.0.1:8545",
  PAY_TO_ADDRESS: "0x00000000000000000000000000000000C0FFEE01",
};
const ONE = "0x00000000000000000000000000000000000E5C01";
const TWO = "0x00000000000000000000000000000000000e5c02";
const HEAD = 41_000_000;

function settings(changed: Record<string, string> = {}): IndexerSettings {
  const parsed = parseSettings({ ...GOOD, ...changed });
  if ("problem" in parsed) throw new Error(parsed.problem);
  return parsed;
}

describe("the escrow's settings", () => {
  test.each([undefined, ""])("%j: no escrow is followed", (value) => {
    expect(parseSettings({ ...GOOD, ESCROW_ADDRESSES: value })).toMatchObject({
      escrows: [],
      escrowStartBlock: 0,
      ownAddresses: [GOOD.PAY_TO_ADDRESS.toLowerCase()],
    });
  });

  test("the escrows are among the service's own addresses, and each is named once", () => {
    const changed = { ESCROW_ADDRESSES: `${TWO}, ${ONE},${ONE.toLowerCase()}`, OWN_ADDRESSES: TWO };
    expect(settings(changed)).toMatchObject({
      escrows: [ONE.toLowerCase(), TWO],
      ownAddresses: [ONE.toLowerCase(), TWO, GOOD.PAY_TO_ADDRESS.toLowerCase()],
    });
  });

  test.each([
    ["ESCROW_ADDRESSES", `${ONE},`, "addresses of escrow contracts, separated by commas"],
    ["ESCROW_ADDRESSES", "0x12", "each 0x and 40 hex digits"],
    ["ESCROW_START_BLOCK", "latest", "a whole number from 0 to 999999999"],
  ])("%s=%s is named with what is expected", (name, value, expected) => {
    expect(parseSettings({ ...GOOD, [name]: value })).toEqual({
      problem: expect.stringMatching(new RegExp(`^${name} is wrong: expected [^\n]*${expected}[^\n]*$`)),
    });
  });
});

describe("the schema's name", () => {
  let db: pg.Pool;
  beforeAll(async () => {
    db = new pg.Pool({ connectionString: (await freshDatabase()).ownerUrl, max: 1 });
  });
  afterAll(() => db.end());
  const namesOf = async (changed: Record<string, string>) => {
    const start = { head: HEAD, countHolds: async () => 0 };
    const payments = await chooseDeployment(db, settings(changed), start);
    return [payments.schema, (await chooseEscrowDeployment(db, settings(changed), HEAD)).schema] as const;
  };

  test("of the escrows' index changes with the escrows and their start block, and that of the payments' does not", async () => {
    const variants = [
      { ESCROW_ADDRESSES: ONE },
      { ESCROW_ADDRESSES: `${ONE},${TWO}` },
      { ESCROW_ADDRESSES: `${ONE},${TWO}`, ESCROW_START_BLOCK: "7" },
    ];
    const names: (readonly [string, string])[] = [];
    for (const changed of variants) names.push(await namesOf(changed));
    expect(new Set(names.map(([payments]) => payments)).size).toBe(1);
    expect(new Set(names.map(([, escrows]) => escrows)).size).toBe(variants.length);
    expect(await namesOf({ ESCROW_ADDRESSES: `${TWO},${ONE.toLowerCase()}` })).toEqual(names[1]);
  });
});
