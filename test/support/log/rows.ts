/** A certificate without a payment, as text: a statement for any connection. */
export const certificateInsert = (id: string): string => `INSERT INTO certificate
    (id, product, test_version, result, level, wallet, checks, detected, issued_at, valid_until, chain, asset, nonce, tx, block_number, amount, pay_to)
  VALUES ('${id}', 'basic', 1, 'pass', 'Conformant', decode(repeat('01', 20), 'hex'), '{"paid":"pass"}', '{}', now(),
    now() + interval '30 days', 8453, decode(repeat('02', 20), 'hex'), decode(repeat('${id}', 4), 'hex'),
    decode(repeat('03', 32), 'hex'), 1, 250000, decode(repeat('04', 20), 'hex'))`;
