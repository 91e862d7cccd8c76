/** What one escrow holds and has earned. USDC that arrived without a hold has no event and is not counted. */
export interface EscrowSums {
  /** The sum of all payments held now. Together with `owed`, everything the escrow must have. */
  readonly held: bigint;
  readonly owed: bigint;
  readonly fees: bigint;
  readonly withdrawn: bigint;
}

export const NO_ESCROW_SUMS: EscrowSums = { held: 0n, owed: 0n, fees: 0n, withdrawn: 0n };

export function addToEscrow(sums: EscrowSums, change: Partial<EscrowSums>): EscrowSums {
  const add = { ...NO_ESCROW_SUMS, ...change };
  return {
    held: sums.held + add.held,
    owed: sums.owed + add.owed,
    fees: sums.fees + add.fees,
    withdrawn: sums.withdrawn + add.withdrawn,
  };
}

interface Amount {
  readonly amount: bigint;
}

// What each event of contracts/interfaces/IEscrow.sol adds. A payout that USDC refuses has its own event, `Credited`.

export const postHeld = ({ amount }: Amount): Partial<EscrowSums> => ({ held: amount });

/** The fee is owed to the fee recipient, unless it is paid out at once, as the rest is. */
export const postReleased = (
  { amount, fee }: Amount & { readonly fee: bigint },
  { isFeePaid }: { readonly isFeePaid: boolean },
): Partial<EscrowSums> => ({ held: -amount, owed: isFeePaid ? 0n : fee, fees: fee });

export const postRefunded = ({ amount }: Amount): Partial<EscrowSums> => ({ held: -amount });

export const postCredited = ({ amount }: Amount): Partial<EscrowSums> => ({ owed: amount });

export const postWithdrawn = ({ amount }: Amount): Partial<EscrowSums> => ({ owed: -amount, withdrawn: amount });
