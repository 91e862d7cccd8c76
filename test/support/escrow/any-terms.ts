import fc from "fast-check";
import type { PaymentInfo } from "../../../packages/escrow/src/index.ts";

const anyHex = (bytes: number) =>
  fc
    .uint8Array({ minLength: bytes, maxLength: bytes })
    .map((given) => `0x${Buffer.from(given).toString("hex")}` as const);

export const anyAddress = anyHex(20);
export const anyBytes32 = anyHex(32);
const time = fc.maxSafeNat().map((any) => any % 2 ** 48);
const bps = fc.nat(65_535);

/** Any terms that a contract can receive. */
export const anyTerms = fc.record({
  operator: anyAddress,
  payer: anyAddress,
  receiver: anyAddress,
  token: anyAddress,
  maxAmount: fc.bigInt({ min: 0n, max: 2n ** 120n - 1n }),
  preApprovalExpiry: time,
  authorizationExpiry: time,
  refundExpiry: time,
  minFeeBps: bps,
  maxFeeBps: bps,
  feeReceiver: anyAddress,
  salt: fc.bigInt({ min: 0n, max: 2n ** 256n - 1n }),
}) satisfies fc.Arbitrary<PaymentInfo>;
