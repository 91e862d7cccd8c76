// What is put together by hand for each escrowed sale (api/kernel/abi-words.ts, api/kernel/typed-data.ts and what uses them) beside
// viem on the same values: processor time of one call, in turns.
//
//   node bench/encodings/run.ts
import { encodeFunctionData, hashTypedData } from "viem";
import { authorizeData, endingData } from "../../api/adapters/chain/escrow-calldata.ts";
import { verdictDigest } from "../../api/adapters/chain/verdict-digest.ts";
import { DELIVERY_TYPES_2, deliveryDigest, deliveryDomain, sha256 } from "../../api/escrow/delivery.ts";
import { paymentId } from "../../api/escrow/payment.ts";
import { NETWORKS } from "../../api/kernel/networks.ts";
import { escrowAbi } from "../../contracts/abi.ts";
import * as kit from "../../packages/escrow/src/payment-info.ts";
import { median } from "../programs.ts";

const ROUNDS = 9;
const CALLS = 500;
const network = "eip155:8453" as const;
const { chainId } = NETWORKS[network];
const address = (digits: string) => `0x${digits.repeat(20)}` as const;
const [contract, id, signature] = [address("aa"), `0x${"77".repeat(32)}`, `0x${"12".repeat(65)}`] as const;
const info = {
  ...{ operator: contract, payer: address("bb"), receiver: address("cc"), token: address("dd") },
  ...{ maxAmount: 100_000n, preApprovalExpiry: 1_795_478_940, authorizationExpiry: 1_795_565_340 },
  ...{ refundExpiry: 1_795_651_740, minFeeBps: 100, maxFeeBps: 100, feeReceiver: address("ee"), salt: 2n ** 200n },
};
const facts = {
  status: 200,
  contentType: "application/json",
  contentEncoding: null,
  body: Buffer.from('{"haiku":"pond"}'),
};
const message = {
  ...{ paymentId: id, status: facts.status, bodySha256: sha256(facts.body) },
  ...{ contentType: facts.contentType, contentEncoding: "" },
} as const;
const verdict = { network, contract, payment: id, decision: "release" } as const;
const VERDICT = {
  primaryType: "Verdict",
  types: {
    Verdict: [
      { name: "paymentId", type: "bytes32" },
      { name: "release", type: "bool" },
      { name: "record", type: "bytes32" },
    ],
  },
  domain: { name: "Agent Payment Trust Escrow", version: "1", chainId, verifyingContract: contract },
} as const;

type Make = () => string;
const PAIRS: Readonly<Record<string, { readonly ours: Make; readonly viems: Make }>> = {
  "a payment's id": {
    ours: () => paymentId(info, chainId, contract),
    viems: () => kit.paymentId({ chainId, escrow: contract }, info),
  },
  "the call of a hold": {
    ours: () => authorizeData({ info, collector: contract, signature }),
    viems: () =>
      encodeFunctionData({
        abi: escrowAbi,
        functionName: "authorize",
        args: [info, info.maxAmount, contract, signature],
      }),
  },
  "the call of a release": {
    ours: () => endingData({ decision: "release", info, record: id, verdict: signature }),
    viems: () => encodeFunctionData({ abi: escrowAbi, functionName: "release", args: [info, id, signature] }),
  },
  "a delivery's digest": {
    ours: () => deliveryDigest({ network, contract, id }, { ...facts, version: 2, contest: null }),
    viems: () => hashTypedData({ domain: deliveryDomain(NETWORKS[network], contract), ...DELIVERY_TYPES_2, message }),
  },
  "a verdict's digest": {
    ours: () => verdictDigest(verdict, id),
    viems: () => hashTypedData({ ...VERDICT, message: { paymentId: id, release: true, record: id } }),
  },
};

function micros(make: Make): number {
  const before = process.cpuUsage();
  for (let call = 0; call < CALLS; call++) make();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / CALLS;
}

for (const [what, { ours, viems }] of Object.entries(PAIRS)) {
  if (ours() !== viems()) throw new Error(`${what} is not viem's`);
  const rounds = Array.from({ length: ROUNDS }, () => [micros(ours), micros(viems)] as const);
  const [own, other] = [median(rounds.map(([time]) => time)), median(rounds.map(([, time]) => time))];
  console.log(`${what.padEnd(22)} ${own.toFixed(1).padStart(6)} µs   viem ${other.toFixed(1).padStart(6)} µs`);
}
