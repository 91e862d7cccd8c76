import type { Hex } from "viem";
import { decodeBytes, encodeBytes } from "../bytes.ts";
import { type DeliveryStore, type Ending, type KeptDelivery, newLease } from "./delivery-store.ts";

/** The parts of a `pg` pool or client that are used. */
export interface Queries {
  query(text: string, values?: unknown[]): Promise<{ readonly rows: readonly unknown[] }>;
}

/** The table that `postgresStore` uses. Rows may be deleted after three days, because no payment waits longer. */
export const POSTGRES_TABLE = `
create table if not exists escrow_deliveries (
  id text primary key,
  resource text not null,
  lease text not null,
  lease_until timestamptz not null,
  head jsonb,
  body bytea,
  decision text,
  created_at timestamptz not null default now()
)`;

const CLAIM = `
insert into escrow_deliveries as claimed (id, resource, lease, lease_until)
values ($1, $2, $3, clock_timestamp() + $4 * interval '1 millisecond')
on conflict (id) do update set lease = excluded.lease, lease_until = excluded.lease_until
where claimed.resource = excluded.resource and claimed.head is null and claimed.lease_until <= clock_timestamp()
returning resource, lease`;

const EXTEND = `
update escrow_deliveries set lease_until = clock_timestamp() + $3 * interval '1 millisecond'
where id = $1 and lease = $2 and lease_until > clock_timestamp()
returning id`;

const KEEP = `
insert into escrow_deliveries as kept (id, resource, lease, lease_until, head, body, decision)
values ($1, $2, '', clock_timestamp(), $3, decode($4, 'base64'), $5)
on conflict (id) do update set head = excluded.head, body = excluded.body, decision = excluded.decision
where kept.head is null`;

const GET = `
select resource, head, encode(body, 'base64') as body, decision from escrow_deliveries
where id = $1 and head is not null`;

interface Row {
  readonly resource: string;
  readonly head: Pick<KeptDelivery, "status" | "headers" | "transaction">;
  readonly body: string;
  readonly decision: KeptDelivery["decision"];
}

/**
 * Returns a delivery store in PostgreSQL, in the table of `POSTGRES_TABLE`, which you create once. Any number of
 * processes.
 */
export function postgresStore(pool: Queries): DeliveryStore {
  const get = async (id: Hex): Promise<KeptDelivery | null> => {
    const [row] = (await pool.query(GET, [id])).rows as readonly Row[];
    if (row === undefined) return null;
    const { resource, head, body, decision } = row;
    return { ...head, resource, decision, body: decodeBytes(body.replaceAll("\n", "")) };
  };
  return {
    get,
    async claim(id, resource, leaseMs) {
      const [claimed] = (await pool.query(CLAIM, [id, resource, newLease(), leaseMs])).rows;
      if (claimed !== undefined) return claimed as { readonly resource: string; readonly lease: string };
      const { rows } = await pool.query("select resource from escrow_deliveries where id = $1", [id]);
      const [other] = rows as readonly { readonly resource: string }[];
      return { resource: other?.resource ?? resource, lease: null };
    },
    async extend(id, lease, leaseMs) {
      return (await pool.query(EXTEND, [id, lease, leaseMs])).rows.length === 1;
    },
    async keep(id, { resource, body, decision, ...head }) {
      const { status, headers, transaction } = head;
      const stored = JSON.stringify({ status, headers, transaction });
      await pool.query(KEEP, [id, resource, stored, encodeBytes(body), decision]);
      const kept = await get(id);
      if (kept === null) throw new Error(`The delivery of payment ${id} was stored but is gone.`);
      return kept;
    },
    async decide(id, ending: Ending) {
      await pool.query("update escrow_deliveries set decision = $2 where id = $1 and head is not null", [id, ending]);
    },
  };
}
