import { bereft, forming, type Relayed, tending } from "./relay.ts";
import type { Explored, Outcome } from "./shell.ts";
import { authorizationOf, type Surroundings, withRow } from "./world.ts";

/**
 * Marks fulfilled payments in a final block. Final blocks never change, so the reading and the statement are one step.
 */
export function finalize({ world }: Explored, now: Surroundings): Outcome[] {
  if (world.resolver === "sleeps") return [];
  return now.rows.flatMap((row, slot) => {
    if (row === null || row.leaseLive || row.final || row.state !== "fulfilled") return [];
    const { onChain, place } = authorizationOf(now, row.authorization);
    if (row.place !== place || onChain !== "paid, final") return [];
    const after = bereft(withRow(now, slot, { ...row, final: true }), slot);
    const label = `payment ${row.authorization} is marked final`;
    return [{ label, after, process: null, taken: slot, answered: null, broken: null }];
  });
}

/** Returns the moves of the relayer outside of runs, and the start of a shared lookup. */
export function relayed({ world, off }: Explored, now: Surroundings): Outcome[] {
  const outcome = (one: Relayed): Outcome => ({ ...one, process: null, taken: null, answered: null });
  const older = { ...now, older: now.authorizations };
  const look = { label: "a lookup of all payments begins", after: older, broken: null };
  const looks = off === "look-begins-afterwards" && now.older === null ? [look] : [];
  return [...forming({ world, off }, now), ...tending({ world, off }, now), ...looks].map(outcome);
}
