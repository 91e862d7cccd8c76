import { readFileSync, writeFileSync } from "node:fs";
import { encodeFunctionData, getAddress, type Hex, hashTypedData, sha256 } from "viem";
import { privateKeyToAccount } from "viem/accounts";
import { expect, test } from "vitest";
import { escrowAbi } from "../../../packages/escrow/src/abi.ts";
import { authorizationOf } from "../../../packages/escrow/src/authorization.ts";
import {
  boundSalt,
  conditionsSha256,
  contestOnWire,
  contestPolicy,
  refundSecondsBeyond,
} from "../../../packages/escrow/src/contest-terms.ts";
import {
  type Delivery,
  deliveryTypedData,
  type EscrowFacts,
  payerAgnosticNonce,
  paymentId,
  requirements,
  signDelivery,
} from "../../../packages/escrow/src/index.ts";
import { escrowAt, placeOf } from "../../../packages/escrow/src/terms.ts";

// The published vectors of docs/escrow-protocol.md. Set GOLDEN=write to regenerate them.

const FILE = new URL("../../vectors/escrow.json", import.meta.url);
const key = (byte: string): Hex => `0x${byte.repeat(32)}`;
const [payer, merchant] = [privateKeyToAccount(key("11")), privateKeyToAccount(key("22"))];
const address = (byte: string) => getAddress(`0x${byte.repeat(20)}`);
const NOW = 1_800_000_000;

const common = {
  chainId: 8453,
  usdc: { address: getAddress("0x833589fcd6edb6e08f4c7c32d4f71b54bda02913"), name: "USD Coin", version: "2" },
  feeReceiver: address("44"),
  deliveryDomain: { name: "Agent Payment Trust Delivery", version: "1" },
};
const ESCROWS: readonly EscrowFacts[] = [
  { ...common, ...escrowAt(address("e5")) },
  {
    ...common,
    scheme: "auth-capture",
    address: address("0b"),
    custody: getAddress("0xf96815976523E00e65Be8f34cA5e64b4f41EB19c"),
    collector: getAddress("0x8612dfdc421f80336cd14E8EF9cb1E765dB5ab88"),
  },
];
const CONTEST = { seconds: 600, conditions: { expect: { min_bytes: 4, expect_contains: "pond" } } };
const SALT_NONCE = 0x5555n;

async function vector(escrow: EscrowFacts, contest: typeof CONTEST | undefined) {
  const offer = { escrow, merchant: merchant.address, price: 100_000n, contest };
  const authorizationExpiry = NOW + 86_400 + (escrow.scheme === "commerce" ? 0 : 120);
  const beyond = contest === undefined ? (escrow.scheme === "commerce" ? 86_400 : 0) : refundSecondsBeyond(contest);
  const info = {
    operator: escrow.address,
    payer: payer.address,
    receiver: merchant.address,
    token: escrow.usdc.address,
    maxAmount: 100_000n,
    preApprovalExpiry: NOW + 120,
    authorizationExpiry,
    refundExpiry: authorizationExpiry + beyond,
    minFeeBps: 100,
    maxFeeBps: 100,
    feeReceiver: escrow.feeReceiver,
    salt: contest === undefined ? SALT_NONCE : boundSalt(contestPolicy(contest), SALT_NONCE),
  };
  const place = placeOf(escrow);
  const id = paymentId(place, info);
  const typed = authorizationOf(escrow, info);
  const signature = await payer.signTypedData(typed);
  const body = '{"haiku":"An old silent pond"}';
  const delivery: Delivery = {
    status: 200,
    headers: [["content-type", "application/json"]],
    body: new TextEncoder().encode(body),
  };
  const bound = contest === undefined ? undefined : { ...contest, saltNonce: SALT_NONCE };
  return {
    // Times are rounded up.
    accepts: requirements(offer, NOW * 1000 - 999),
    paymentInfo: { ...info, maxAmount: String(info.maxAmount), salt: String(info.salt) },
    ...(bound === undefined
      ? {}
      : {
          contest: {
            ...contestOnWire(bound),
            policy: contestPolicy(bound),
            conditions_sha256: conditionsSha256(bound.conditions),
          },
        }),
    nonce: payerAgnosticNonce(place, info),
    payment_id: id,
    authorization: { digest: hashTypedData(typed), signature },
    authorize: {
      to: escrow.address,
      data: encodeFunctionData({
        abi: escrowAbi,
        functionName: "authorize",
        args: [info, info.maxAmount, escrow.collector, signature],
      }),
    },
    delivery: {
      status: 200,
      content_type: "application/json",
      body,
      body_sha256: sha256(delivery.body),
      digest: hashTypedData(deliveryTypedData(escrow, id, delivery, bound)),
      signature: await signDelivery(merchant, escrow, id, delivery, bound),
    },
  };
}

test("The vectors of the escrow protocol are what the package computes", async () => {
  const cases = ESCROWS.flatMap((escrow) => [undefined, CONTEST].map((contest) => ({ escrow, contest })));
  const vectors = await Promise.all(
    cases.map(async ({ escrow, contest }) => ({
      name: `${escrow.scheme}${contest === undefined ? "" : ", with a window to contest"}`,
      ...(await vector(escrow, contest)),
    })),
  );
  const made = {
    source: "This service's own: docs/escrow-protocol.md has the rules.",
    now: NOW,
    keys: { payer: key("11"), merchant: key("22") },
    vectors,
  };
  if (process.env.GOLDEN === "write") writeFileSync(FILE, `${JSON.stringify(made, null, 2)}\n`);
  expect(made).toEqual(JSON.parse(readFileSync(FILE, "utf8")));
});
