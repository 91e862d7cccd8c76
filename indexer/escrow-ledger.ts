type Address = `0x${string}`;

/** What one account has done in one escrow, and what it can claim there, in atomic units of USDC. */
export interface AccountSums {
  /** As payer: held now. */
  readonly held: bigint;
  /** What a withdrawal would pay it. */
  readonly owed: bigint;
  /** As payer: the sum of all its holds, whatever became of them. */
  readonly paid: bigint;
  /** As payer: how many of its holds were refunded, and their sum. */
  readonly refunds: number;
  readonly refunded: bigint;
  /** As merchant: how many holds were released to it, and their sum, the fee included. */
  readonly releases: number;
  readonly released: bigint;
  readonly withdrawn: bigint;
}

/** What one escrow holds and has earned. USDC that arrived without a hold has no event and is not counted. */
export interface EscrowSums {
  /** The sum of all payments held now. Together with `owed`, everything the escrow must have. */
  readonly held: bigint;
  readonly owed: bigint;
  readonly fees: bigint;
  readonly withdrawn: bigint;
}

/** What one event adds to the sums; the same account may appear in several entries. */
export interface Posting {
  readonly accounts: readonly { readonly account: Address; readonly add: Partial<AccountSums> }[];
  readonly escrow: Partial<EscrowSums>;
}

export const NO_ACCOUNT_SUMS: AccountSums = {
  held: 0n,
  owed: 0n,
  paid: 0n,
  refunds: 0,
  refunded: 0n,
  releases: 0,
  released: 0n,
  withdrawn: 0n,
};

export const NO_ESCROW_SUMS: EscrowSums = { held: 0n, owed: 0n, fees: 0n, withdrawn: 0n };

export function addToAccount(sums: AccountSums, change: Partial<AccountSums>): AccountSums {
  const add = { ...NO_ACCOUNT_SUMS, ...change };
  return {
    held: sums.held + add.held,
    owed: sums.owed + add.owed,
    paid: sums.paid + add.paid,
    refunds: sums.refunds + add.refunds,
    refunded: sums.refunded + add.refunded,
    releases: sums.releases + add.releases,
    released: sums.released + add.released,
    withdrawn: sums.withdrawn + add.withdrawn,
  };
}

export function addToEscrow(sums: EscrowSums, change: Partial<EscrowSums>): EscrowSums {
  const add = { ...NO_ESCROW_SUMS, ...change };
  return {
    held: sums.held + add.held,
    owed: sums.owed + add.owed,
    fees: sums.fees + add.fees,
    withdrawn: sums.withdrawn + add.withdrawn,
  };
}

interface Payment {
  readonly payer: Address;
  readonly receiver: Address;
  readonly amount: bigint;
}

// One function per event of contracts/interfaces/IEscrow.sol. A payout that USDC refuses has its own event, `Credited`.

export const postHeld = ({ payer, amount }: Payment): Posting => ({
  accounts: [{ account: payer, add: { held: amount, paid: amount } }],
  escrow: { held: amount },
});

/** The fee is owed to the fee recipient of `Opened`, null if it is paid out at once, as the rest is. */
export const postReleased = (
  { payer, receiver, amount, fee }: Payment & { readonly fee: bigint },
  feeRecipient: Address | null,
): Posting => ({
  accounts: [
    { account: payer, add: { held: -amount } },
    { account: receiver, add: { releases: 1, released: amount } },
    ...(feeRecipient === null ? [] : [{ account: feeRecipient, add: { owed: fee } }]),
  ],
  escrow: { held: -amount, owed: feeRecipient === null ? 0n : fee, fees: fee },
});

export const postRefunded = ({ payer, amount }: Omit<Payment, "receiver">): Posting => ({
  accounts: [{ account: payer, add: { held: -amount, refunds: 1, refunded: amount } }],
  escrow: { held: -amount },
});

interface Claim {
  readonly account: Address;
  readonly amount: bigint;
}

export const postCredited = ({ account, amount }: Claim): Posting => ({
  accounts: [{ account, add: { owed: amount } }],
  escrow: { owed: amount },
});

export const postWithdrawn = ({ account, amount }: Claim): Posting => ({
  accounts: [{ account, add: { owed: -amount, withdrawn: amount } }],
  escrow: { owed: -amount, withdrawn: amount },
});
