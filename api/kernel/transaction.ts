/** An open database transaction, handed to stores so that what they record commits with the answer or not at all. */
export interface Transaction {
  query(text: string, values: readonly unknown[]): Promise<{ readonly rowCount: number | null }>;
}
