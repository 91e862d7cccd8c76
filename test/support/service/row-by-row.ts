/** Rows of a table with this key, and what to make of them; in SQL. */
interface RowChange {
  readonly table: string;
  readonly key: readonly string[];
  readonly set: string;
  readonly where: string;
}

/**
 * A statement that changes rows under running processes, each in a transaction of its own. One that had many rows locked would
 * now and then wait for a process that waits for it, and PostgreSQL would end one of the two.
 */
export const rowByRow = ({ table, key, set, where }: RowChange): string => `DO $$ DECLARE one record; BEGIN
  FOR one IN SELECT ${key.join(", ")} FROM ${table} WHERE ${where} LOOP
    UPDATE ${table} SET ${set} WHERE ${key.map((column) => `${column} = one.${column}`).join(" AND ")} AND ${where};
    COMMIT;
  END LOOP;
END $$`;

export const eachPayment = (set: string, where = "true"): string =>
  rowByRow({ table: "payment", key: ["chain", "asset", "payer", "nonce"], set, where });
