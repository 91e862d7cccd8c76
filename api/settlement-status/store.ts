import { createHash } from "node:crypto";
import type pg from "pg";
import { KEY, keyValues } from "../payments/index.ts";
import type { HashedBlock } from "../platform/chain/nodes.ts";
import { hex } from "../platform/db/connection.ts";
import { NETWORKS, type Network } from "../platform/networks.ts";
import type { Address, Hex } from "../platform/wallet.ts";
import type { FinalFacts, KnownTransaction, NonceEnd, NonceName } from "./reading.ts";

/** The size of the table. */
const SLOTS = 131_072;

const GET = "SELECT name, fact FROM authorization_fact WHERE slot = ANY($1) AND name = ANY($2)";

/** The first fact about a subject stays. A fact about another subject in the same slot is replaced. */
const PUT = `INSERT INTO authorization_fact AS kept (slot, name, fact) VALUES ($1, $2, $3)
  ON CONFLICT (slot) DO UPDATE SET name = excluded.name,
    fact = CASE WHEN kept.name = excluded.name THEN kept.fact ELSE excluded.fact END
  RETURNING fact`;

interface BlockFact {
  readonly block: number;
  readonly hash: Hex;
  /** Unix seconds, as text. */
  readonly time: string;
}

interface EndFact extends BlockFact {
  readonly transaction: Hex;
  readonly transfer: { readonly to: Address; readonly value: string } | null;
}

interface FactRow {
  readonly name: Buffer;
  readonly fact: EndFact;
}

/** Stores final facts in PostgreSQL, for all processes, in a fixed-size table. */
export function createAuthorizationFacts(pool: pg.Pool, network: Network): FinalFacts {
  const about = (kind: "end" | "unused", { from, nonce }: NonceName, more = ""): Buffer =>
    createHash("sha256").update(`${kind}|${network}|${from}|${nonce}|${more}`).digest();
  const slotOf = (name: Buffer): number => name.readUInt32BE(0) % SLOTS;
  const put = async <Fact>(name: Buffer, fact: Fact): Promise<Fact> => {
    const values = [slotOf(name), name, JSON.stringify(fact)];
    const { rows } = await pool.query<{ fact: Fact }>({ name: "authorization-fact-put", text: PUT, values });
    return rows[0]?.fact ?? fact;
  };
  return {
    async get(named, validBefore) {
      const end = about("end", named);
      const unused = validBefore === null ? null : about("unused", named, validBefore.toString());
      const names = unused === null ? [end] : [end, unused];
      const values = [names.map(slotOf), names];
      const { rows } = await pool.query<FactRow>({ name: "authorization-fact-get", text: GET, values });
      const factAbout = (name: Buffer | null) => rows.find((row) => name !== null && row.name.equals(name))?.fact;
      const [ended, before] = [factAbout(end), factAbout(unused)];
      return {
        end: ended === undefined ? null : endOf(ended),
        unusedBefore: before === undefined ? null : blockOf(before),
      };
    },
    async putEnd(named, { transaction, block, transfer }) {
      const paid = transfer === null ? null : { to: transfer.to, value: transfer.value.toString() };
      await put<EndFact>(about("end", named), { ...factOf(block), transaction, transfer: paid });
    },
    putUnused: async (named, validBefore, block) =>
      blockOf(await put(about("unused", named, validBefore.toString()), factOf(block))),
  };
}

const factOf = ({ number, hash, time }: HashedBlock): BlockFact => ({ block: number, hash, time: time.toString() });

const blockOf = ({ block, hash, time }: BlockFact): HashedBlock => ({ number: block, hash, time: BigInt(time) });

const endOf = ({ transaction, transfer, ...block }: EndFact): NonceEnd => ({
  transaction,
  block: blockOf(block),
  transfer: transfer === null ? null : { to: transfer.to, value: BigInt(transfer.value) },
});

/** Returns the transactions of the service's payments, from the journal. */
export const createKnownTransactions =
  (pool: pg.Pool): KnownTransaction =>
  async (network, { from: payer, nonce }) => {
    const { rows } = await pool.query<{ tx: Buffer | null }>({
      name: "payment-transaction",
      text: `SELECT tx FROM payment WHERE ${KEY}`,
      values: keyValues({ network, asset: NETWORKS[network].usdc.address, payer, nonce }),
    });
    const tx = rows[0]?.tx ?? null;
    return tx === null ? null : hex(tx);
  };
