import type { ChainReading, PayeeFact } from "../../../packages/verifier/src/score/facts.ts";
import { otherFunders } from "../../../packages/verifier/src/score/funders.ts";
import type { Address } from "../../platform/wallet.ts";
import type { LookedPayee } from "./examine.ts";
import type { Snapshot } from "./lookup-ports.ts";

const larger = (a: string, b: string): string => (BigInt(a) > BigInt(b) ? a : b);

/** What the index says of a wallet, with what was looked up. A payee that is newer than the look-up stays unknown. */
export function withLookup(wallet: Address, reading: ChainReading, snapshot: Snapshot | undefined): ChainReading {
  const { chain } = reading;
  if (chain.scope !== "selective" || snapshot === undefined) return reading;
  const { largestFunder, block, block_hash, as_of_block } = snapshot;
  const payees = chain.payees.map((payee) => {
    const looked = snapshot.payees[payee.payee];
    return looked === undefined ? payee : known(payee, looked, { wallet, largestFunder });
  });
  return {
    ...reading,
    chain: { ...chain, lookup: { block, block_hash, as_of_block }, largest_funder: largestFunder, payees },
  };
}

interface Looking {
  readonly wallet: Address;
  readonly largestFunder: Address | null;
}

function known(payee: PayeeFact, looked: LookedPayee, { wallet, largestFunder }: Looking): PayeeFact {
  const { funder_at_floor, payers } = looked;
  const funded = payers.filter(({ funder }) => funder !== null).length;
  return {
    ...payee,
    // The index knows of the payee's authorized payments, which may be newer.
    returned: larger(payee.returned, looked.returned),
    funder_at_floor,
    payers,
    other_funders: otherFunders(payers, { wallet, payee: payee.payee, funders: [largestFunder, funder_at_floor] }),
    unfunded_payers: Math.max(payers.length, payee.unfunded_payers) - funded,
  };
}
