import fc from "fast-check";
import { getAddress } from "viem";
import { COMMERCE_PAYMENTS } from "../../../contracts/commerce-payments.ts";
import type { EscrowFacts, PaymentInfo } from "../../../packages/escrow/src/index.ts";
import { escrowAt, type Offer } from "../../../packages/escrow/src/terms.ts";

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

/** Any nonzero address, as a document spells it. */
export const anyAccount = anyAddress.filter((address) => !/^0x0*$/.test(address)).map((address) => getAddress(address));

const rolesOf = (scheme: EscrowFacts["scheme"], address: EscrowFacts["address"]) =>
  scheme === "commerce"
    ? escrowAt(address)
    : { scheme, address, custody: COMMERCE_PAYMENTS.escrow, collector: COMMERCE_PAYMENTS.collector };

/** Any offer through a contract that this scheme pays. */
export const anyOffer = (scheme: EscrowFacts["scheme"]) =>
  fc.record({
    escrow: fc
      .record({
        chainId: fc.constantFrom(8453, 84532),
        address: anyAccount,
        usdc: fc.record({ address: anyAccount, name: fc.constant("USD Coin"), version: fc.constant("2") }),
        feeReceiver: anyAccount,
        deliveryDomain: fc.constant({ name: "Agent Payment Trust Delivery", version: "1" }),
      })
      .map((facts): EscrowFacts => ({ ...facts, ...rolesOf(scheme, facts.address) })),
    merchant: anyAccount,
    price: fc.bigInt({ min: 1n, max: 2n ** 120n - 1n }),
  }) satisfies fc.Arbitrary<Offer>;

/** One fixed offer of 0.10 USDC. */
export const anOffer = (scheme: EscrowFacts["scheme"]): Offer => {
  const [offer] = fc.sample(anyOffer(scheme), { numRuns: 1, seed: 1 });
  return { ...(offer as Offer), price: 100_000n };
};
