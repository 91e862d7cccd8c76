import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  addToEscrow,
  type EscrowSums,
  NO_ESCROW_SUMS,
  postCredited,
  postHeld,
  postRefunded,
  postReleased,
  postWithdrawn,
} from "../../indexer/escrow-ledger.ts";

type Address = "alice" | "bob" | "carol" | "fee recipient";
const ACCOUNTS = ["alice", "bob", "carol", "fee recipient"] as const;

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
function createContract(post: (add: Partial<EscrowSums>) => void, isFeePaid: boolean) {
  const open: { payer: Address; receiver: Address; amount: bigint }[] = [];
  const owed = new Map<Address, bigint>();
  let balance = 0n;
  const owe = (to: Address, amount: bigint) => owed.set(to, (owed.get(to) ?? 0n) + amount);
  const pay = (to: Address, amount: bigint, refused: boolean) => {
    if (!refused) {
      balance -= amount;
      return;
    }
    owe(to, amount);
    post(postCredited({ amount }));
  };
  const withdraw = (to: Address) => {
    const amount = owed.get(to) ?? 0n;
    if (amount === 0n) return;
    owed.set(to, 0n);
    post(postWithdrawn({ amount }));
    balance -= amount;
  };
  const run = ({ kind, payer, receiver, amount, pick, refused }: Step) => {
    if (kind === "withdraw") return withdraw(payer);
    if (kind === "hold") {
      open.push({ payer, receiver, amount });
      balance += amount;
      return post(postHeld({ amount }));
    }
    const [payment] = open.splice(pick % Math.max(1, open.length), 1);
    if (payment === undefined) return;
    if (kind === "refund") {
      post(postRefunded(payment));
      return pay(payment.payer, payment.amount, refused);
    }
    const fee = payment.amount / 100n;
    if (isFeePaid) balance -= fee;
    else owe("fee recipient", fee);
    post(postReleased({ amount: payment.amount, fee }, { isFeePaid }));
    pay(payment.receiver, payment.amount - fee, refused);
  };
  return { run, open, owed, balance: () => balance };
}

describe("the sums of a contract", () => {
  test("are its own after every step of any history, whether it owes its fees or pays them at once", () => {
    const property = fc.property(fc.array(step, { maxLength: 60 }), fc.boolean(), (steps, isFeePaid) => {
      let sums = NO_ESCROW_SUMS;
      const contract = createContract((add) => {
        sums = addToEscrow(sums, add);
      }, isFeePaid);
      for (const one of steps) {
        contract.run(one);
        expect(sums.held + sums.owed).toBe(contract.balance());
        expect(sums.held).toBe(contract.open.reduce((sum, { amount }) => sum + amount, 0n));
        expect(sums.owed).toBe([...contract.owed.values()].reduce((sum, amount) => sum + amount, 0n));
      }
    });
    fc.assert(property, { numRuns: 400 });
  });

  test("have a release's fee, and no refund's", () => {
    const adds = [
      postHeld({ amount: 1_000n }),
      postHeld({ amount: 1_000n }),
      postReleased({ amount: 1_000n, fee: 10n }, { isFeePaid: false }),
      postRefunded({ amount: 1_000n }),
    ];
    expect(adds.reduce(addToEscrow, NO_ESCROW_SUMS)).toEqual({ held: 0n, owed: 10n, fees: 10n, withdrawn: 0n });
  });
});
