import { resourceOf, type Settler } from "../../payments/index.ts";
import { createAccount, derivedKey } from "../../platform/chain/accounts.ts";
import { authorizationTypedData } from "../../platform/chain/authorization.ts";
import type { UsdcReader } from "../../platform/chain/usdc.ts";
import type { Authorization, Head } from "../../platform/chain/view.ts";
import { NETWORKS, type Network } from "../../platform/networks.ts";
import type { Address, Hex } from "../../platform/wallet.ts";
import { entriesOf, refundOf, WATCHED_DAYS, ZERO_ADDRESS } from "./refund.ts";
import type { Debt, DecoyOf, DecoyStore } from "./store.ts";

/** Blocks per read, and reads per pass. */
const SPAN = 9_000;
const SPANS_A_PASS = 50;
/**
 * Blocks read again in every pass, about an hour's worth, because a node may have lacked a log or served one too late.
 */
const OVERLAP = 1_800;
const DAY_MS = 86_400_000;

export type Decoys = ReturnType<typeof createDecoys>;

/**
 * Creates addresses that only the owner of the seed can spend from: the private key is the HMAC-SHA-256 of the decoy's
 * name under the seed. The keys never leave this function.
 */
export function createDecoys(seed: Uint8Array) {
  const decoy = (name: string) => createAccount(derivedKey(seed, `decoy|${name}`));
  return {
    /** Returns the address for one of a session's `decoyNames`. */
    addressOf: (name: string): Address => decoy(name).address,
    sign: (name: string, network: Network, authorization: Authorization): Promise<Hex> =>
      decoy(name).signTypedData(authorizationTypedData(authorization, NETWORKS[network])),
  };
}

interface DecoyParts {
  readonly decoys: DecoyStore;
  readonly usdc: UsdcReader;
  readonly signer: Pick<Decoys, "sign">;
  readonly settler: Pick<Settler, "submit">;
  /** Returns why USDC would refuse the transfer, or null if it would not. */
  readonly refusal: (authorization: Authorization, signature: Hex) => Promise<string | null>;
  readonly network: Network;
  readonly baseUrl: string;
  readonly now: () => Date;
  readonly log: Record<"warn" | "error", (facts: object, message: string) => void>;
}

/**
 * Updates the books of all decoys up to a final block. Returns false if there is more to read than fits in one pass.
 */
async function readTransfers(parts: DecoyParts, next: number, final: Head): Promise<boolean> {
  const { decoys, usdc, now } = parts;
  // A session is stored before its address is shown, so any transfer in a block known by now went to one of these.
  const watched = await decoys.watched(new Date(now().getTime() - WATCHED_DAYS * DAY_MS));
  const addresses = watched.map(({ address }) => address);
  let position = next;
  let from = firstBlock(next, watched, final);
  for (let span = 0; from <= final.number; span++) {
    if (span === SPANS_A_PASS) return false;
    const to = Math.min(from + SPAN - 1, final.number);
    const entries = entriesOf(addresses.length === 0 ? [] : await usdc.transfersOf(addresses, { from, to }), watched);
    const moved = Math.max(position, to + 1);
    const added = await decoys.record(entries, { from: position, to: moved, now: now() });
    if (added === null) return false;
    for (const { other, decoy, value, transaction } of added.filter((entry) => entry.other === ZERO_ADDRESS))
      parts.log.error({ decoy, from: other, value: String(value), transaction }, MINTED);
    position = moved;
    from = to + 1;
  }
  return true;
}

const MINTED = "USDC was minted to a decoy address, so there is no sender to return it to";

/**
 * Returns the block to read from: a little before the position, and no earlier than the first of these addresses could
 * be known.
 */
function firstBlock(next: number, watched: readonly DecoyOf[], final: Head): number {
  const known = watched.flatMap(({ fromBlock }) => fromBlock ?? []);
  const first = known.reduce((least, block) => Math.min(least, block), final.number);
  return Math.max(Math.max(next, first) - OVERLAP, 0);
}

/** For all processes together. */
const PASS_EVERY_MS = 60_000;
/** From this attempt on, hours after the first, a refund that makes no progress needs an operator. */
const ALERT_FROM_ATTEMPT = 4;

/** Returns USDC that reached a decoy, because decoys must not be paid, and anyone who pays one keeps the money. */
export function createDecoyRefunds(parts: DecoyParts) {
  const { decoys, usdc, now } = parts;
  return {
    /** Returns the number of refunds submitted. Only one process does this at a time, at most once a minute. */
    async giveBack(): Promise<number> {
      const next = await decoys.claim(now(), new Date(now().getTime() + PASS_EVERY_MS));
      if (next === null) return 0;
      const final = await usdc.finalHead();
      if (!(await readTransfers(parts, next, final))) return 0;
      let given = 0;
      for (const debt of await decoys.due(now())) if (await refund(parts, debt, final)) given++;
      return given;
    },
  };
}

/** A failed refund does not stop the others. */
async function refund(parts: DecoyParts, debt: Debt, final: Head): Promise<boolean> {
  const obstacle = await submit(parts, debt, final).catch((error: unknown) => error);
  if (obstacle === null) return true;
  const { session, decoy, sender, attempts } = debt;
  const facts = { session, decoy, from: sender, value: String(debt.received - debt.returned), attempts };
  const why = obstacle instanceof Error ? { err: obstacle } : { reason: obstacle };
  if (attempts < ALERT_FROM_ATTEMPT) parts.log.warn({ ...facts, ...why }, WAITS);
  else parts.log.error({ ...facts, ...why }, STUCK);
  return false;
}

const WAITS = "USDC at a decoy address is not sent back yet; it will be tried again";
const STUCK = "USDC at a decoy address still cannot be sent back; it will be tried again";

/** Returns null once the refund was submitted, or why it was not. */
async function submit(parts: DecoyParts, debt: Debt, final: Head): Promise<string | null> {
  const { decoys, signer, settler, network, baseUrl, now, log } = parts;
  const refund = refundOf(debt, BigInt(Math.floor(now().getTime() / 1000)), final);
  if (refund === null) return "the last refund has nearly expired, and may still settle";
  const { authorization, isNew } = refund;
  const [used] = await parts.usdc.areUsed([{ payer: debt.decoy, nonce: authorization.nonce }]);
  if (used) return "the last refund is on chain but not in a final block yet";
  if (isNew && !(await decoys.pend(debt, authorization))) return "another process has taken it up";
  const signature = await signer.sign(debt.session, network, authorization);
  const refused = await parts.refusal(authorization, signature);
  if (refused !== null) return refused;
  await decoys.submitting(debt, now());
  const { session, sender: from } = debt;
  log.warn({ session, from, value: String(authorization.value) }, "USDC reached a decoy address and will be sent back");
  const description = "Returns USDC that was sent to a decoy address.";
  const resource = resourceOf(baseUrl, { path: "/test/recipient/start", description });
  await settler.submit({ network, authorization, signature, resource });
  return null;
}
