import type pg from "pg";
import type { Product } from "../../packages/verifier/src/score/facts.ts";
import { CAPABILITIES } from "../../packages/verifier/src/score/record.ts";
import type { Result } from "../certificates/certificate.ts";
import type { ScoreCertificates } from "./score-sources.ts";
import { aboutWallet } from "../certificates/about-wallet.ts";
import { bytes } from "../platform/db/connection.ts";

interface Columns {
  place: number;
  id: string;
  product: Product;
  result: Result;
  issued_at: Date;
  valid_until: Date;
}

/** The tests a score considers. */
const SCORED = Object.values(CAPABILITIES).map((product) => `'${product}'`);

/**
 * The newest certificate per product and result that is about the wallet and that no reversal undoes: eight look-ups
 * per wallet, however many certificates it has.
 */
const NEWEST = `SELECT k.place::int, c.id, c.product, c.result, c.issued_at, c.valid_until
  FROM unnest($1::bytea[]) WITH ORDINALITY k(wallet, place)
  CROSS JOIN unnest(ARRAY[${SCORED}]) product
  CROSS JOIN unnest(ARRAY['pass', 'fail']) result
  CROSS JOIN LATERAL (
    SELECT * FROM certificate o WHERE o.wallet = k.wallet AND o.product = product.product AND o.result = result.result AND ${aboutWallet("o")}
      AND NOT EXISTS (SELECT 1 FROM settlement_mark m WHERE m.payer = o.wallet AND m.nonce IN (o.nonce, o.also_nonce, o.third_nonce)
        AND m.chain = o.chain AND m.asset = o.asset AND m.kind = 'reversed')
    ORDER BY o.issued_at DESC LIMIT 1) c`;

/** What the score reads from the service's own certificates. */
export const createScoreCertificates = (pool: pg.Pool): ScoreCertificates => ({
  async newest(wallets) {
    const { rows } = await pool.query<Columns>({
      name: "score-certificates",
      text: NEWEST,
      values: [wallets.map(bytes)],
    });
    return wallets.map((_, index) =>
      rows
        .filter(({ place }) => place === index + 1)
        .map(({ id, product, result, issued_at, valid_until }) => ({
          id,
          product,
          result,
          issuedAt: issued_at,
          validUntil: valid_until,
        })),
    );
  },
});
