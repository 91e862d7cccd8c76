import { createCertificateStore } from "../../../api/certificates/store.ts";
import { connect } from "../../../api/platform/db/connection.ts";
import { NETWORKS } from "../../../api/platform/networks.ts";
import type { EntryType } from "../../../packages/verifier/src/tlog/entry-types.ts";
import { PASSING } from "../certificates/samples.ts";
import { startTestChain } from "../chain/chain.ts";
import { forFile } from "../for-file.ts";
import { startService } from "../service/service.ts";
import { type StoredEntry, storeLog } from "./stored-log.ts";

export const LOGGED = "00000000000000a1";
export const REVERSED = "00000000000000a2";
export const WAITING = "00000000000000a3";
export const VERDICT = "0".repeat(31).concat("b");
export const PAYMENT = `0x${"0c".repeat(32)}`;
export const KEY = "kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k#2";

const entry = (type: EntryType, ref: string): StoredEntry => ({
  type,
  ref,
  entry: Buffer.from(JSON.stringify({ document: { of: ref }, id: ref, type, version: 1 })),
});

export const ENTRIES: readonly StoredEntry[] = [
  entry("policy", "1"),
  entry("certificate", LOGGED),
  entry("certificate", REVERSED),
  entry("verdict", VERDICT),
  entry("evaluation", PAYMENT),
  entry("contest_answer", PAYMENT),
  entry("reversal", REVERSED),
  ...Array.from({ length: 260 }, (_, index) => entry("score_version", `${index}`)),
  entry("signing_key", KEY),
];
/** The index of the reversal of `REVERSED`. */
export const REVERSAL = 6;

/** A service whose log has `ENTRIES`, and three certificates: one of them waits for its place. */
export async function proofScene() {
  const chain = await forFile(startTestChain());
  const service = await forFile(startService({ chain, jobs: false }));
  const pool = await forFile(connect(service.database.apiUrl));
  const certificates = createCertificateStore(pool);
  const asset = NETWORKS["eip155:8453"].usdc.address;
  for (const [ordinal, id] of [LOGGED, REVERSED, WAITING].entries()) {
    const payment = {
      network: "eip155:8453",
      asset,
      payer: PASSING.wallet,
      nonce: `0x${`${ordinal}`.repeat(64)}`,
    } as const;
    const { text, values } = certificates.adding({ ...PASSING, id }, { payment, also: null });
    await pool.query(text, [...values]);
  }
  const log = await storeLog(service.database, "trust.test/log");
  await log.grow(ENTRIES);
  return { service, pool, log };
}
