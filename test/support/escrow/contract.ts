import { pino } from "pino";
import {
  type Address,
  decodeFunctionData,
  encodeFunctionData,
  type Hex,
  type LocalAccount,
  multicall3Abi,
  parseEventLogs,
} from "viem";
import { generatePrivateKey, privateKeyToAccount } from "viem/accounts";
import { expect } from "vitest";
import { MULTICALL3 } from "../../../api/platform/chain/read-at-block.ts";
import { connect } from "../../../api/platform/db/connection.ts";
import { createService } from "../../../api/service.ts";
import { escrowAbi } from "../../../contracts/abi.ts";
import { COMMERCE_PAYMENTS } from "../../../contracts/commerce-payments.ts";
import { type PaymentInfo, payerAgnosticNonce, paymentId } from "../../../packages/escrow/src/payment-info.ts";
import { devAccount } from "../../../scripts/embedded/dev-accounts.ts";
import { blocksFrom } from "../chain/blocks.ts";
import type { TestChain } from "../chain/chain.ts";
import { deployContract } from "../chain/contracts.ts";
import { forFile } from "../for-file.ts";
import { newPayer, signReceiveAuthorization } from "../payments/signing.ts";
import { rowByRow } from "../service/database.ts";
import { ARBITER_KEY } from "../service/environment.ts";
import type { TestService } from "../service/service.ts";

export const FEE_RECIPIENT: Address = "0x00000000000000000000000000000000c0ffee01";

export interface TestEscrow {
  readonly address: Address;
  /** The contract that holds the money and that payers sign for, if it is another one. */
  readonly custody?: Address;
  readonly collector?: Address;
  readonly arbiter: Address;
  /** The block of its deployment. */
  readonly block: number;
}

/** Deploys the escrow contract on a test chain, with an arbiter that has gas. */
export async function deployEscrow(
  chain: TestChain,
  arbiterKey = ARBITER_KEY,
  feeRecipient = FEE_RECIPIENT,
): Promise<TestEscrow> {
  const arbiter = privateKeyToAccount(arbiterKey).address;
  await chain.setBalance(arbiter, 10n ** 20n);
  const args = [chain.network.usdc.address, arbiter, feeRecipient];
  return { ...(await deployContract(chain.client, devAccount(0), ["Escrow", ...args])), arbiter };
}

/** An escrow and its chain. */
export interface EscrowScene {
  readonly chain: TestChain;
  readonly escrow: TestEscrow;
}

export interface Held {
  readonly buyer: LocalAccount;
  readonly info: PaymentInfo;
  readonly id: Hex;
  /** The transaction of the hold. */
  readonly transaction: Hex;
}

export const newMerchant = (): LocalAccount => privateKeyToAccount(generatePrivateKey());

const lower = (address: Address) => address.toLowerCase() as Address;

type Terms = Partial<PaymentInfo> & { readonly by?: LocalAccount };

/** A signed hold by a new buyer with 10 USDC, or by the given one, of 1 USDC or of the terms' amount. */
async function signHold({ chain, escrow }: EscrowScene, merchant: Address, { by, ...terms }: Terms = {}) {
  const { client, network } = chain;
  const { custody = escrow.address, collector = escrow.address } = escrow;
  const buyer = by ?? (await newPayer(chain, 10_000_000n));
  const now = Number((await client.getBlock()).timestamp);
  const info: PaymentInfo = {
    operator: escrow.address,
    payer: lower(buyer.address),
    receiver: lower(merchant),
    token: network.usdc.address,
    maxAmount: 1_000_000n,
    preApprovalExpiry: now + 600,
    authorizationExpiry: now + 86_400,
    refundExpiry: now + 172_800,
    minFeeBps: 100,
    maxFeeBps: 100,
    feeReceiver: FEE_RECIPIENT,
    salt: BigInt(generatePrivateKey()),
    ...terms,
  };
  const signature = await signReceiveAuthorization(buyer, network, {
    from: buyer.address,
    to: collector,
    value: info.maxAmount,
    validAfter: 0n,
    validBefore: BigInt(info.preApprovalExpiry),
    nonce: payerAgnosticNonce({ chainId: network.chainId, escrow: custody }, info),
  });
  const args = [info, info.maxAmount, collector, signature] as const;
  const call = { address: escrow.address, abi: escrowAbi, functionName: "authorize", args } as const;
  return { buyer, info, id: paymentId({ chainId: network.chainId, escrow: custody }, info), call };
}

/** Makes a buyer's hold in a separate transaction. */
export async function hold(scene: EscrowScene, merchant: Address, terms: Terms = {}): Promise<Held> {
  const { client } = scene.chain;
  const { call, ...signed } = await signHold(scene, merchant, terms);
  const transaction = await client.writeContract({ ...call, account: devAccount(2) });
  expect((await client.waitForTransactionReceipt({ hash: transaction })).status).toBe("success");
  return { ...signed, transaction };
}

/** Makes new buyers' holds for these merchants in one transaction, in this order. */
export async function holdTogether(scene: EscrowScene, merchants: readonly Address[]): Promise<readonly Held[]> {
  const { client } = scene.chain;
  const signed: Awaited<ReturnType<typeof signHold>>[] = [];
  for (const merchant of merchants) signed.push(await signHold(scene, merchant));
  const calls = signed.map(({ call }) => ({
    target: call.address,
    allowFailure: false,
    callData: encodeFunctionData(call),
  }));
  const data = encodeFunctionData({ abi: multicall3Abi, functionName: "aggregate3", args: [calls] });
  const transaction = await client.sendTransaction({ account: devAccount(2), to: MULTICALL3, data, gas: 14_000_000n });
  expect((await client.waitForTransactionReceipt({ hash: transaction })).status).toBe("success");
  return signed.map(({ call: _, ...one }) => ({ ...one, transaction }));
}

const STATUSES = ["none", "held", "released", "refunded"] as const;

/** The contract's status of a payment at the head. */
export async function statusOf({ chain, escrow }: EscrowScene, { id }: Pick<Held, "id">) {
  const call = { address: escrow.address, abi: escrowAbi, functionName: "payments", args: [id] } as const;
  const [status] = await chain.client.readContract(call);
  return STATUSES[status];
}

export interface Asked {
  readonly decision: "release" | "refund";
  readonly succeeded: boolean;
  readonly hash: Hex;
  /** The sender. */
  readonly from: Address;
  /** Its event, or null if it did not succeed. */
  readonly event: { readonly name: string; readonly record: Hex; readonly fee: bigint | null } | null;
}

/** The calls of a transaction to Multicall3, or the call of any other transaction. */
function callsIn({ to, input }: { readonly to: Address | null; readonly input: Hex }) {
  if (to === null || lower(to) !== MULTICALL3) return [{ to, input }];
  const { args } = decodeFunctionData({ abi: multicall3Abi, data: input });
  return (args[0] as readonly { target: Address; callData: Hex }[]).map(({ target, callData }) => ({
    to: target,
    input: callData,
  }));
}

/**
 * Every mined request for an outcome of the payment, successful or not, alone in its transaction or with others. Read
 * from the chain, never from our database.
 */
export async function requestedOutcomes(scene: EscrowScene, { info }: Pick<Held, "info">): Promise<readonly Asked[]> {
  const { client, network } = scene.chain;
  const id = paymentId({ chainId: network.chainId, escrow: scene.escrow.custody ?? scene.escrow.address }, info);
  const blocks = await blocksFrom(scene.chain, scene.escrow.block);
  const calls = blocks
    .flatMap(({ transactions }) => transactions)
    .flatMap((transaction) => callsIn(transaction).map((call) => ({ ...transaction, ...call })))
    .filter(({ to }) => to !== null && lower(to) === scene.escrow.address)
    .flatMap(({ input, hash, from }) => {
      const { functionName, args } = decodeFunctionData({ abi: escrowAbi, data: input });
      if (functionName !== "release" && functionName !== "refund") return [];
      return args[0].salt === info.salt ? [{ decision: functionName, hash, from: lower(from) }] : [];
    });
  return Promise.all(
    calls.map(async (call) => {
      const { logs } = await client.getTransactionReceipt({ hash: call.hash });
      const ends = parseEventLogs({ abi: escrowAbi, eventName: ["Released", "Refunded"], logs });
      const [event] = ends.filter(({ args }) => args.id === id);
      if (event === undefined) return { ...call, succeeded: false, event: null };
      const fee = event.eventName === "Released" ? event.args.fee : null;
      return { ...call, succeeded: true, event: { name: event.eventName, record: event.args.record, fee } };
    }),
  );
}

/** Deploys the operator over base/commerce-payments on a test chain, with the arbiter and fees of `deployEscrow`. */
export async function deployOperator(
  chain: TestChain,
  over = COMMERCE_PAYMENTS,
  feeRecipient = FEE_RECIPIENT,
): Promise<TestEscrow> {
  const arbiter = privateKeyToAccount(ARBITER_KEY).address;
  await chain.setBalance(arbiter, 10n ** 20n);
  const { escrow, collector, feeIsAmount } = over;
  const args = [escrow, collector, chain.network.usdc.address, arbiter, feeRecipient, feeIsAmount];
  return { ...(await deployContract(chain.client, devAccount(0), ["ArbiterOperator", ...args])), arbiter };
}

/** Another process of the same installation, whose jobs the test runs one by one. */
export async function processOf({ config }: Pick<TestService, "config">, now = () => new Date()) {
  const pool = await forFile(connect(config.databaseUrl));
  const log = pino({ level: "silent" });
  return { pool, ...(await createService(config, pool, { log, access: log, now })) };
}

/** For waiting on blocks and turns. */
export const PATIENT = { timeout: 30_000, interval: 20 };

/** Ends the half minute of a task's claim, so any process may claim it again. */
export const END_TURNS = rowByRow({
  table: "escrow_task",
  key: ["payment"],
  set: "next_attempt_at = '-infinity'",
  where: "state <> 'final'",
});

/** Expects exactly one transaction with this outcome, and no request for the other one. */
export async function expectOutcome(at: EscrowScene, one: Held, decision: "release" | "refund") {
  await expect.poll(() => statusOf(at, one), PATIENT).toBe(decision === "release" ? "released" : "refunded");
  // A block's state is visible before its transactions are.
  await expect
    .poll(async () => (await requestedOutcomes(at, one)).some(({ succeeded }) => succeeded), PATIENT)
    .toBe(true);
  const asked = await requestedOutcomes(at, one);
  expect(new Set(asked.map((call) => call.decision))).toEqual(new Set([decision]));
  const [done, ...more] = asked.filter(({ succeeded }) => succeeded);
  expect([done?.from, more]).toEqual([at.escrow.arbiter.toLowerCase(), []]);
  return done;
}
