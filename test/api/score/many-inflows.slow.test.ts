import { expect, test } from "vitest";
import { openProvider } from "../../../api/platform/chain/provider.ts";
import { connect } from "../../../api/platform/db/connection.ts";
import type { Address } from "../../../api/platform/wallet.ts";
import { createInflowReader } from "../../../api/score/lookup/chain.ts";
import { examine } from "../../../api/score/lookup/examine.ts";
import { funderAt, type Inflows, type KnownBlock, NO_INFLOWS } from "../../../api/score/lookup/inflows.ts";
import { createMarkStore } from "../../../api/score/lookup/store.ts";
import { addressOf, type InflowProvider, startInflowNode } from "../../support/chain/inflow-node.ts";
import { forFile } from "../../support/for-file.ts";
import { freshDatabase } from "../../support/service/database.ts";

// Wallets with very many incoming transfers, at a provider that limits logs per response and rejects larger requests or
// truncates them.

const LAST = 12_000;
const FUNDER = addressOf(0xf00d);
const [BUSY, ONE_MORE, CROWDED, BURST, BLAST] = [0xa1, 0xa2, 0xa3, 0xa4, 0xa5].map(addressOf) as [
  ...[Address, Address, Address, Address, Address],
];
/**
 * Transfers to a wallet per block. The very first is its funder's, and each of the others is dust from a different
 * sender.
 */
const COUNTS: Readonly<Record<Address, (block: number) => number>> = {
  [BUSY]: (block) => (block <= 10_000 ? 1 : 0),
  [ONE_MORE]: (block) => (block <= 10_001 ? 1 : 0),
  // 300,000 in total.
  [CROWDED]: () => 25,
  // Requests for many blocks must work again after this burst.
  [BURST]: (block) => (block <= 50 ? 100 : 0),
  // More than any response holds, in two consecutive blocks.
  [BLAST]: (block) => (block === 1 ? 1 : block === 700 || block === 701 ? 4_990 : 0),
};
const WALLETS = [BUSY, ONE_MORE, CROWDED, BURST];

const provider: InflowProvider = {
  last: LAST,
  // Not counting the two marks.
  most: { logs: 2_002, how: "refused" },
  before: async () => undefined,
};
const node = await forFile(
  startInflowNode(
    {
      wallets: Object.keys(COUNTS) as Address[],
      transfers: (to, block) =>
        Array.from({ length: COUNTS[to]?.(block) ?? 0 }, (_, n) =>
          block === 1 && n === 0
            ? { from: FUNDER, value: 1_000_000 }
            : { from: addressOf(2 ** 40 + block * 8_192 + n), value: 1 },
        ),
    },
    provider,
  ),
);
const pool = await forFile(connect((await freshDatabase()).apiUrl, 1));
const basis = { firstBlock: 1, ignored: [] };

async function readAll(wallets: readonly Address[]) {
  await pool.query("delete from lookup_mark");
  Object.assign(node.asked, { logs: 0, refused: 0, returned: 0 });
  const reader = createInflowReader({
    provider: openProvider([node.url], 10_000),
    marks: createMarkStore(pool),
  });
  const spend = async () => undefined;
  const end = (await reader.final(basis, spend)) as KnownBlock;
  expect(end.block).toBe(LAST);
  const read = new Map<Address, Inflows>();
  await reader.read(basis, {
    from: wallets.map((wallet) => ({ wallet, through: null, inflows: NO_INFLOWS })),
    ...{ end, spend },
    save: async (progress) => {
      for (const { wallet, inflows } of progress) read.set(wallet, inflows);
    },
  });
  return (wallet: Address) => read.get(wallet) as Inflows;
}

test.for([
  { logs: 2_002, how: "refused", requests: 150 },
  { logs: 1_000, how: "cut", requests: 300 },
  { logs: 10_000, how: "cut", requests: 60 },
] as const)(
  "Reading stops after 10,000 transfers to a wallet: its funder is known before that block and unknown from there on ($logs logs, others $how)",
  async ({ requests, ...most }) => {
    provider.most = most;
    const of = await readAll(WALLETS);
    expect(WALLETS.map((wallet) => [of(wallet).count, of(wallet).fullAt])).toEqual([
      ...[
        [10_000, null],
        [10_001, 10_001],
        [10_001, 401],
      ],
      [5_000, null],
    ]);
    const funders = [
      ...[funderAt(of(BUSY), LAST), funderAt(of(ONE_MORE), 10_000), funderAt(of(ONE_MORE), 10_001)],
      ...[funderAt(of(CROWDED), 400), funderAt(of(CROWDED), 401)],
    ];
    expect(funders).toEqual([FUNDER, FUNDER, null, FUNDER, null]);
    // 300,000 transfers cost a few dozen requests and are never returned.
    expect(node.asked.logs).toBeLessThan(requests);
    expect(node.asked.refused).toBeGreaterThan(5);
    expect(node.asked.returned).toBeLessThan(60_000);

    // If a wallet's funder is unknown, its payees are not examined and do not count.
    const payee = addressOf(0xb1);
    const payers = [0xc1, 0xc2, 0xc3].map((n) => ({ payer: addressOf(n), block: 3 }));
    const paid = { payee, atomic: 50_000n, unpaid: 0n, isInWindow: true, block: 5, otherPayers: 3, payers };
    const known = new Map([[ONE_MORE, { inflows: of(ONE_MORE), through: LAST }]]);
    expect(examine({ wallet: ONE_MORE, payees: [paid] }, known, LAST)).toEqual({
      largestFunder: null,
      payees: { [payee]: { returned: "0", funder_at_floor: FUNDER, payers: [] } },
    });
  },
);

test("A block with more transfers than a provider returns does not prevent reading", async () => {
  provider.most = { logs: 2_002, how: "refused" };
  const of = await readAll([BLAST, BUSY]);
  expect([of(BLAST).count, of(BLAST).fullAt, funderAt(of(BLAST), LAST)]).toEqual([9_981, null, FUNDER]);
  expect(of(BUSY).count).toBe(10_000);
  expect(node.asked.logs).toBeLessThan(150);
});
