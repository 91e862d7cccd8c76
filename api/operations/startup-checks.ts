import type pg from "pg";
import { NETWORKS, type Network } from "../platform/networks.ts";
import type { ChainReader } from "../platform/chain/chain-reader.ts";

/** What is wrong with the database, or null. The service's role must not be able to change permanent records. */
export async function checkDatabase(pool: pg.Pool): Promise<string | null> {
  try {
    const { rows } = await pool.query<{ table: string | null; may_change: boolean | null }>(
      `SELECT to_regclass('certificate')::text AS table, has_table_privilege(to_regclass('certificate')::oid, 'UPDATE, DELETE, TRUNCATE') AS may_change`,
    );
    if (rows[0]?.table === null)
      return "The database has no schema: run `npm run migrate` with the owner's DATABASE_URL first.";
    if (rows[0]?.may_change) {
      return "The role in DATABASE_URL can change or delete certificates. Use a login role that is a member of only trust_api: CREATE ROLE trust LOGIN PASSWORD '…' IN ROLE trust_api.";
    }
    return null;
  } catch (error) {
    return `The database in DATABASE_URL cannot be used: ${(error as Error).message}`;
  }
}

/** What is wrong with the chains, or null: a node of another chain would settle nothing. */
export async function checkChains(chains: Readonly<Record<Network, ChainReader>>): Promise<string | null> {
  const problems = await Promise.all(
    Object.values(NETWORKS).map(async ({ id, chainId, rpcVariable }) => {
      try {
        const found = await chains[id].client.getChainId();
        return found === chainId ? null : `${rpcVariable} is a node of chain ${found}; expected chain ${chainId}.`;
      } catch (error) {
        return `${rpcVariable} is not responding: ${(error as Error).message.split("\n")[0]}`;
      }
    }),
  );
  return problems.find((problem) => problem !== null) ?? null;
}
