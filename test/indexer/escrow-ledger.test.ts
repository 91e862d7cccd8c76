import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  type AccountSums,
  addToAccount,
  addToEscrow,
  NO_ACCOUNT_SUMS,
  NO_ESCROW_SUMS,
  type Posting,
  postCredited,
  postHeld,
  postRefunded,
  postReleased,
  postWithdrawn,
} from "../../indexer/escrow-ledger.ts";

type Address = `0x${string}`;
const ACCOUNTS: readonly Address[] = ["0xa", "0xb", "0xc", "0xd"];
const FEE_RECIPIENT: Address = "0xd";
const [ALICE, BOB] = ["0xa", "0xb"] as const;

/** Sums as the handlers keep them. */
function createBooks() {
  const accounts = new Map<Address, AccountSums>();
  let escrow = NO_ESCROW_SUMS;
  const sumsOf = (account: Address) => accounts.get(account) ?? NO_ACCOUNT_SUMS;
  const post = (posting: Posting) => {
    for (const { account, add } of posting.accounts) accounts.set(account, addToAccount(sumsOf(account), add));
    escrow = addToEscrow(escrow, posting.escrow);
  };
  const total = (field: "held" | "owed" | "paid" | "refunded" | "released" | "withdrawn") =>
    ACCOUNTS.reduce((sum, account) => sum + sumsOf(account)[field], 0n);
  return { post, sumsOf, total, escrow: () => escrow };
}

const account = fc.constantFrom(...ACCOUNTS);
const step = fc.record({
  kind: fc.constantFrom("hold", "hold", "release", "refund", "withdraw"),
  payer: account,
  receiver: account,
  amount: fc.bigInt({ min: 1n, max: 10_000n }),
  pick: fc.nat(100),
  refused: fc.boolean(),
});
type Step = typeof step extends fc.Arbitrary<infer T> ? T : never;

/** The contract, as its interface describes it: what USDC it has, what it owes, which holds are open. */
function createContract(post: (posting: Posting) => void) {
  const open: { payer: Address; receiver: Address; amount: bigint }[] = [];
  const owed = new Map<Address, bigint>(ACCOUNTS.map((address) => [address, 0n]));
  let balance = 0n;
  const owe = (to: Address, amount: bigint) => owed.set(to, (owed.get(to) ?? 0n) + amount);
  const pay = (to: Address, amount: bigint, refused: boolean) => {
    if (!refused) {
      balance -= amount;
      return;
    }
    owe(to, amount);
    post(postCredited({ account: to, amount }));
  };
  const withdraw = (to: Address) => {
    const amount = owed.get(to) ?? 0n;
    if (amount === 0n) return;
    owed.set(to, 0n);
    post(postWithdrawn({ account: to, amount }));
    balance -= amount;
  };
  const run = ({ kind, payer, receiver, amount, pick, refused }: Step) => {
    if (kind === "withdraw") return withdraw(payer);
    if (kind === "hold") {
      open.push({ payer, receiver, amount });
      balance += amount;
      return post(postHeld({ payer, receiver, amount }));
    }
    const [payment] = open.splice(pick % Math.max(1, open.length), 1);
    if (payment === undefined) return;
    if (kind === "refund") {
      post(postRefunded(payment));
      return pay(payment.payer, payment.amount, refused);
    }
    const fee = payment.amount / 100n;
    owe(FEE_RECIPIENT, fee);
    post(postReleased({ ...payment, fee }, FEE_RECIPIENT));
    pay(payment.receiver, payment.amount - fee, refused);
  };
  return { run, open, owed, balance: () => balance };
}

describe("the escrow's sums", () => {
  test("are the contract's after every step of any history", () => {
    const property = fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
      const books = createBooks();
      const contract = createContract(books.post);
      for (const one of steps) {
        contract.run(one);
        const { held, owed } = books.escrow();
        expect(held + owed).toBe(contract.balance());
        expect(books.total("held")).toBe(held);
        expect(books.total("owed")).toBe(owed);
        expect(books.total("paid")).toBe(held + books.total("released") + books.total("refunded"));
        expect(books.total("withdrawn")).toBe(books.escrow().withdrawn);
        for (const address of ACCOUNTS) {
          const mine = contract.open.filter(({ payer }) => payer === address).map(({ amount }) => amount);
          expect(books.sumsOf(address).held).toBe(mine.reduce((sum, amount) => sum + amount, 0n));
          expect(books.sumsOf(address).owed).toBe(contract.owed.get(address));
        }
      }
    });
    fc.assert(property, { numRuns: 400 });
  });

  test("a release is the merchant's, a refund the payer's", () => {
    const books = createBooks();
    const payment = { payer: ALICE, receiver: BOB, amount: 1_000n };
    for (const posting of [postHeld(payment), postHeld(payment)]) books.post(posting);
    books.post(postReleased({ ...payment, fee: 10n }, FEE_RECIPIENT));
    books.post(postRefunded(payment));
    expect(books.sumsOf(ALICE)).toEqual({ ...NO_ACCOUNT_SUMS, paid: 2_000n, refunds: 1, refunded: 1_000n });
    expect(books.sumsOf(BOB)).toEqual({ ...NO_ACCOUNT_SUMS, releases: 1, released: 1_000n });
    expect(books.sumsOf(FEE_RECIPIENT)).toEqual({ ...NO_ACCOUNT_SUMS, owed: 10n });
    expect(books.escrow()).toEqual({ held: 0n, owed: 10n, fees: 10n, withdrawn: 0n });
  });
});
