import type { EscrowSender, OverdueHolds, Task } from "./escrow-ports.ts";
import type { Network } from "../platform/networks.ts";
import type { Hex } from "../platform/wallet.ts";
import type { EscrowIndex } from "./index-store.ts";
import type { Account } from "../platform/chain/account.ts";
import { endingData } from "./calldata.ts";
import { type Carriable, outcomePurpose } from "./outcome-batch.ts";
import { createOutcomes, type Outcome, type OutcomesParts } from "./outcomes.ts";
import { verdictDigest } from "./verdict-digest.ts";

const NO_RECORD = `0x${"00".repeat(32)}` as const;
const NO_VERDICT = "0x";

/**
 * More than any release or refund uses: 80,000, to an account that USDC refuses to pay, when nothing was ever owed to it
 * nor to the fee recipient; over base/commerce-payments 93,000. They call nothing but USDC and what holds the money.
 */
export const OUTCOME_GAS = 120_000n;

export interface EscrowSenderParts extends OutcomesParts {
  /** The arbiter, whose relayer this is. */
  readonly arbiter: Pick<Account, "sign">;
}

/** Carries outcomes to the contract, by the arbiter's own key. Null if no escrow contract is configured. */
export function createEscrowSender(parts: EscrowSenderParts | null): EscrowSender {
  if (parts === null)
    return {
      async carry() {
        throw new Error("no arbiter is configured: ESCROW_ADDRESSES and ARBITER_PRIVATE_KEY are missing");
      },
    };
  const send = createOutcomes(parts);
  return { carry: (task) => send(outcomeOf(parts, task)) };
}

function outcomeOf({ arbiter }: Pick<EscrowSenderParts, "arbiter">, task: Task): Outcome {
  const { contract: to, info, payment, decision } = task;
  const record = task.record ?? NO_RECORD;
  const data = (verdict: Hex) => endingData({ decision, info, record, verdict });
  return {
    purpose: outcomePurpose(payment, decision),
    own: { to, data: data(NO_VERDICT) },
    async carriable(): Promise<Carriable> {
      // What the clock decided is anybody's to carry out, and the contract looks at the clock.
      const verdict = task.record === null ? NO_VERDICT : arbiter.sign(verdictDigest(task, record));
      return { to, data: data(verdict), gas: OUTCOME_GAS };
    },
  };
}

/** Holds past their 30 minutes, according to the index. */
export const createOverdueHolds = (index: EscrowIndex, network: Network): OverdueHolds => ({
  async overdue(now, { limit, after }) {
    const found = await index.overdue(now, limit, after);
    return (
      found?.map(({ id, contract, terms, refundableFrom, held }) => ({
        network,
        contract,
        id,
        info: terms,
        transaction: held.transaction,
        block: held.block,
        refundableFrom,
      })) ?? null
    );
  },
});
