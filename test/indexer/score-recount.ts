import type pg from "pg";
import type { Address } from "viem";
import type { PayeeFact } from "../../packages/verifier/src/score/facts.ts";
import { blockOf, countedIn, type Fact, largestFunder, moves, type Reached, type Scope, sum } from "./recount.ts";

const DAY_MS = 86_400_000;
type Rows = Readonly<Record<string, readonly object[]>>;

/** Bytes as the handlers store them. */
const asText = (row: object): object =>
  Object.fromEntries(
    Object.entries(row).map(([name, value]) => {
      if (!Buffer.isBuffer(value)) return [name, value];
      return [name, name === "ages" ? value.toString("base64") : `0x${value.toString("hex")}`];
    }),
  );

/**
 * The tables that scores are computed from, as Ponder stores them, in the order of their keys. Days before every window
 * may be missing.
 */
export async function readTables(reader: pg.Pool): Promise<Rows> {
  const tables = Object.entries({
    wallet_day: "wallet, day",
    pair: "low, high",
    wallet: "wallet",
    paid: "payer, payee",
    payee_slot: "payer, slot",
    payer_funder: "payee, funder",
    payer_slot: "payee, slot",
    floor_block: "payer, payee",
  });
  const read = tables.map(async ([table, key]) => {
    // A history of scope `full` has no payers' tables.
    const there = await reader.query("select to_regclass($1) is not null as there", [`live.${table}`]);
    if (there.rows[0]?.there !== true) return [table, []] as const;
    const kept = table === "wallet_day" ? "where day >= (select max(day) - 91 from live.wallet_day)" : "";
    const { rows } = await reader.query(`select * from live.${table} ${kept} order by ${key}`);
    return [table, rows.map(asText)] as const;
  });
  return Object.fromEntries(await Promise.all(read));
}

const releasesOfOlder = (facts: readonly Fact[]) => {
  const held = new Set(facts.flatMap(({ kind, id }) => (kind === "hold" ? [id] : [])));
  return facts.filter(({ kind, id }) => kind === "release" && !held.has(id));
};

/** A release is not a meeting, because its hold was one. */
const counts = ({ kind }: Fact) => kind !== "release";
/** Dust makes no counterparty. */
const meets = (fact: Fact) => counts(fact) && fact.value >= 1_000n;

/** The total of these payments that is held in an escrow and not released. */
function unpaid(payments: readonly Fact[], facts: readonly Fact[]): bigint {
  const holds = payments.filter(({ kind }) => kind === "hold");
  const released = new Set(facts.flatMap(({ kind, id }) => (kind === "release" ? [id] : [])));
  return sum(holds.filter(({ id }) => !released.has(id)));
}

const seconds = ({ timestampMs }: Fact) => String(timestampMs / 1000);
const dayOf = ({ timestampMs }: Fact) => Math.floor(timestampMs / DAY_MS);
const sorted = <T>(map: ReadonlyMap<string, T>) => [...map].toSorted(([a], [b]) => (a < b ? -1 : 1));

/** Every row of every table by definition, from all transfers in the chain's order. */
export function recountTables(all: readonly Fact[], scope: Scope): Rows {
  const { facts, reached } = countedIn(all, scope);
  const payments = facts.filter(({ authorized }) => authorized);
  return {
    wallet_day: recountDays(facts.filter(counts)),
    // In scope `selective`, `paid` has the same sums, unless the hold of a release is older than the index.
    pair: sorted(
      Map.groupBy(scope === "full" ? facts : releasesOfOlder(facts), ({ from, to }) => [from, to].toSorted().join()),
    ).map(([key, both]) => {
      const [low, high] = key.split(",") as [string, string];
      const [up, down] = [low, high].map((side) => both.filter((fact) => fact.from === side && moves(fact)));
      const last_day = Math.max(0, ...both.filter(meets).map(dayOf));
      return {
        low: `0x${low}`,
        high: `0x${high}`,
        last_day,
        up_atomic: `${sum(up ?? [])}`,
        down_atomic: `${sum(down ?? [])}`,
      };
    }),
    wallet: recountWallets(facts, reached, scope),
    paid: sorted(Map.groupBy(payments, ({ from, to }) => `${from},${to}`)).map(([, mine]) =>
      recountPaid(mine, reached, { facts, scope }),
    ),
    payee_slot: sorted(Map.groupBy(reached, ({ from }) => from)).flatMap(([payer, mine]) =>
      mine
        .map(({ to }, ordinal) => ({ payer: `0x${payer}`, slot: ordinal % 64, payee: `0x${to}`, ordinal }))
        .slice(-64)
        .toSorted((a, b) => a.slot - b.slot),
    ),
    payer_funder: [...new Set(reached.flatMap(({ to, funder }) => (funder ? [`0x${to},${funder}`] : [])))]
      .toSorted()
      .map((key) => ({ payee: key.split(",")[0], funder: key.split(",")[1] })),
    ...recountPayers(scope === "selective" ? reached : []),
  };
}

/** The payers of a payee: the 16 newest, with the block in which each reached the floor. */
function recountPayers(reached: readonly Reached[]): Rows {
  return {
    payer_slot: sorted(Map.groupBy(reached, ({ to }) => to)).flatMap(([payee, mine]) =>
      mine
        .map(({ from }, ordinal) => ({ payee: `0x${payee}`, slot: ordinal % 16, payer: `0x${from}`, ordinal }))
        .slice(-16)
        .toSorted((a, b) => a.slot - b.slot),
    ),
    floor_block: reached
      .map(({ from, to, place }) => ({ payer: `0x${from}`, payee: `0x${to}`, block: String(blockOf(place)) }))
      .toSorted((a, b) => (a.payer + a.payee < b.payer + b.payee ? -1 : 1)),
  };
}

const qualifies = ({ authorized, value }: Fact) => authorized && value >= 1_000n;

function recountWallets(facts: readonly Fact[], reached: readonly Reached[], scope: Scope): readonly object[] {
  const funded = scope === "full" ? facts.filter(moves).map(({ to }) => to) : [];
  const payers = facts.filter(qualifies).map(({ from }) => from);
  const wallets = new Set([...funded, ...payers, ...reached.flatMap(({ from, to }) => [from, to])]);
  return [...wallets].toSorted().map((wallet) => {
    const funder = largestFunder(wallet, facts, scope);
    const fromFunder = facts.filter((fact) => `0x${fact.from}` === funder && fact.to === wallet && moves(fact));
    const last = facts.findLast((fact) => fact.from === wallet && qualifies(fact));
    const toIt = reached.filter(({ to }) => to === wallet);
    const funders = toIt.map((payment) => payment.funder);
    return {
      wallet: `0x${wallet}`,
      funder,
      funder_atomic: `${sum(fromFunder)}`,
      last_paid_at: last ? seconds(last) : null,
      last_paid_transaction: last?.transaction ?? null,
      payees: reached.filter(({ from }) => from === wallet).length,
      payers: toIt.length,
      payer_funders: new Set(funders.filter((one) => one !== null)).size,
      unfunded_payers: funders.filter((one) => one === null).length,
    };
  });
}

function recountPaid(
  mine: readonly Fact[],
  reached: readonly Reached[],
  { facts, scope }: { readonly facts: readonly Fact[]; readonly scope: Scope },
): object {
  const [first, last] = [mine[0] as Fact, mine.at(-1) as Fact];
  return {
    payer: `0x${first.from}`,
    payee: `0x${first.to}`,
    count: mine.length,
    met_day: scope === "full" ? null : (mine.filter(meets).map(dayOf).at(-1) ?? null),
    atomic: `${sum(mine)}`,
    unpaid_atomic: `${unpaid(mine, facts)}`,
    first_at: seconds(first),
    last_at: seconds(last),
    last_transaction: last.transaction,
    funder: reached.find(({ from, to }) => from === first.from && to === first.to)?.funder ?? null,
  };
}

/**
 * The score's reading of a wallet by definition, from all transfers in the chain's order. Payees are in the order of
 * their addresses.
 */
export function recountReading(all: readonly Fact[], wallet: Address, at: { asOf: Date; scope: Scope }) {
  const { facts, reached } = countedIn(all, at.scope);
  const [me, today] = [wallet.slice(2), Math.floor(at.asOf.getTime() / DAY_MS)];
  const inWindow = (fact: Fact) => dayOf(fact) > today - 90 && dayOf(fact) <= today;
  const mine = facts.filter((fact) => fact.from === me && qualifies(fact) && inWindow(fact));
  const last = mine.at(-1);
  const newest = reached.filter(({ from }) => from === me).slice(-64);
  return {
    window: { from: isoDay(today - 89), to: isoDay(today) },
    payments: {
      days: [...Map.groupBy(mine, dayOf)].map(([day, some]) => ({
        ...{ day: isoDay(day), count: some.length, value: `${sum(some)}` },
      })),
      last: last ? { at: isoTime(last), tx: last.transaction } : null,
    },
    largest_funder: largestFunder(me, facts, at.scope),
    payees: newest
      .toSorted((a, b) => (a.to < b.to ? -1 : 1))
      .map((payment) => recountPayee(facts, reached, { payment, scope: at.scope })),
  };
}

const isoDay = (day: number) => new Date(day * DAY_MS).toISOString().slice(0, 10);
const isoTime = ({ timestampMs }: Fact) => new Date(timestampMs).toISOString();

function recountPayee(
  facts: readonly Fact[],
  reached: readonly Reached[],
  { payment, scope }: { payment: Reached; scope: Scope },
): PayeeFact {
  const { from: me, to: payee, funder } = payment;
  const paid = facts.filter((fact) => fact.authorized && fact.from === me && fact.to === payee);
  const circle = [`0x${me}`, `0x${payee}`, largestFunder(me, facts, scope), funder];
  const payers = reached.filter(({ to }) => to === payee);
  const others = payers.map((one) => one.funder).filter((one) => one !== null && !circle.includes(one));
  const unfunded = payers.filter((one) => one.funder === null && one.from !== me);
  return {
    payee: `0x${payee}`,
    value: `${sum(paid)}`,
    first_at: isoTime(paid[0] as Fact),
    last_at: isoTime(paid.at(-1) as Fact),
    last_tx: paid.at(-1)?.transaction ?? "0x",
    returned: `${sum(facts.filter((fact) => fact.from === payee && fact.to === me && moves(fact))) + unpaid(paid, facts)}`,
    funder_at_floor: funder,
    other_funders: new Set(others).size,
    unfunded_payers: unfunded.length,
    payers: scope === "selective" ? [] : null,
  };
}

/**
 * The youngest age, then the number of wallets touched at most that number of days earlier, for each further day: three
 * bytes each.
 */
function within(known: readonly number[]): string {
  const first = Math.min(...known);
  const ages = Array.from({ length: Math.max(...known) - first + 1 }, (_, k) => first + k);
  const counts = ages.map((most) => known.filter((age) => age <= most).length);
  return Buffer.from([first, ...counts.flatMap((count) => [count >> 16, (count >> 8) & 255, count & 255])]).toString(
    "base64",
  );
}

function recountDays(facts: readonly Fact[]): readonly object[] {
  const touches = facts.flatMap((fact) => [
    { wallet: fact.from, other: fact.to, fact },
    { wallet: fact.to, other: fact.from, fact },
  ]);
  const byWallet = Map.groupBy(touches, ({ wallet }) => wallet);
  const days = Map.groupBy(touches, ({ wallet, fact }) => `0x${wallet},${String(dayOf(fact)).padStart(6, "0")}`);
  const newest = Math.max(...facts.map(dayOf));
  const kept = sorted(days).filter(([key]) => Number(key.slice(43)) >= newest - 91);
  return kept.map(([key, today]) => {
    const [wallet, day] = [key.slice(0, 42), Number(key.slice(43))];
    const earlier = (byWallet.get(key.slice(2, 42)) ?? []).filter(({ fact }) => meets(fact) && dayOf(fact) < day);
    const others = [...new Set(today.filter(({ fact }) => meets(fact)).map(({ other }) => other))];
    const ages = others.map(
      (one) => day - Math.max(...earlier.filter(({ other }) => other === one).map((touch) => dayOf(touch.fact))),
    );
    const known = ages.filter((age) => age < 90);
    const paid = today
      .filter((touch) => `0x${touch.fact.from}` === wallet && touch.fact.authorized)
      .map(({ fact }) => fact);
    return {
      wallet,
      day,
      paid: paid.length,
      qualifying: paid.filter(qualifies).length,
      qualifying_atomic: `${sum(paid.filter(qualifies))}`,
      touched: others.length,
      ages: known.length === 0 ? null : within(known),
      last_at: seconds(today.at(-1)?.fact as Fact),
    };
  });
}
