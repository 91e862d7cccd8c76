/** An open database transaction, handed to stores so that what they write commits with the answer or not at all. */
export interface Transaction {
  query<Row extends object = Record<string, unknown>>(
    text: string,
    values: readonly unknown[],
  ): Promise<{ readonly rowCount: number | null; readonly rows: readonly Row[] }>;
}
