import {
  type Address,
  decodeFunctionResult,
  encodeFunctionData,
  type Hex,
  keccak256,
  multicall3Abi,
  parseSignature,
  toHex,
} from "viem";
import { type PrivateKeyAccount, privateKeyToAccount } from "viem/accounts";
import { MULTICALL3 } from "../../../api/platform/chain/read-at-block.ts";
import { NETWORKS } from "../../../api/platform/networks.ts";
import { usdcAbi } from "../../../contracts/abi.ts";
import { SETTLEMENT_BATCH, settlementBatchAbi } from "../../../contracts/settlement-batch.ts";
import { devAccount } from "../../../scripts/embedded/dev-accounts.ts";
import { USDC_ABI } from "../../../scripts/embedded/usdc.ts";
import { artifactOf } from "../../support/chain/contracts.ts";
import { onLocalBase, type UsdcChain } from "../../support/chain/usdc-chain.ts";
import { type Signed, settleCall, signAuthorization } from "../../support/payments/signing.ts";

/** The number of payments per transaction, and the gas limit per payment in a settlement batch. */
export const CEILINGS = { 1: 91_100, 2: 69_100, 5: 55_900, 10: 51_500, 25: 48_880, 50: 48_010, 100: 47_560 } as const;
export type Size = keyof typeof CEILINGS;
export const SIZES = Object.keys(CEILINGS).map(Number) as readonly Size[];

/** The payer's act after the simulation. */
const CHANGES = {
  "pays as signed": async () => {},
  "delegates to code that burns all gas": ({ client }, { authorization }) =>
    client.setCode({ address: authorization.from, bytecode: `0xef0100${BURNER.slice(2)}` }),
  "moves its USDC away": async ({ client }, { authorization: { from, to } }) => {
    await client.impersonateAccount({ address: from });
    await client.setBalance({ address: from, value: 10n ** 18n });
    const call = { account: from, chain: null, address: BASE.usdc.address, abi: USDC_ABI } as const;
    await client.writeContract({ ...call, functionName: "transfer", args: [to, HELD] });
  },
  "submits the payment itself": async ({ client }, signed) => {
    await client.sendTransaction({ account: RELAYER, chain: null, to: BASE.usdc.address, data: singleCall(signed) });
  },
  "is blacklisted": ({ blacklist }, { authorization }) => blacklist(authorization.from),
} as const satisfies Record<string, (chain: UsdcChain, signed: Signed) => Promise<unknown>>;
export type Change = keyof typeof CHANGES;
export const CHANGE_NAMES = Object.keys(CHANGES) as readonly Change[];

export interface BatchGas {
  /** One payment in a separate transaction. */
  readonly alone: number;
  /** Gas per payment, by the number of payments per transaction. */
  readonly batch: Readonly<Record<Size, number>>;
  readonly multicall3: Readonly<Record<Size, number>>;
  /**
   * The least gas cap for the most expensive payment: the payer's whole balance, to a payee without USDC, with cold
   * storage.
   */
  readonly leastCap: number;
  /** The gas that a tenth payment adds to a batch of nine, by its payer's act before it is mined. */
  readonly tenth: Readonly<Record<Change, number>>;
}

const BASE = NETWORKS["eip155:8453"];
const RELAYER = devAccount(5).address;
const PAY_TO: Address = "0x8f3a6c1f9d24e7b05a3c1de29f40b7c86e15d2a9";
const BURNER: Address = "0x00000000000000000000000000000000bad00001";
const VALUE = 250_000n;
const HELD = 10_000_000n;
const GAS_CAP = 100_000n;

/** Measures with cold storage. Payers keep some USDC, and the payee has some. */
export const measureBatches = (): Promise<BatchGas> =>
  onLocalBase(async (chain) => {
    const { deployedBytecode: bytecode } = artifactOf("SettlementBatch");
    await chain.client.setCode({ address: SETTLEMENT_BATCH.address, bytecode });
    // JUMPDEST, PUSH0, JUMP
    await chain.client.setCode({ address: BURNER, bytecode: "0x5b5f56" });
    await chain.fund(PAY_TO, 1n);
    return measureOn(chain, await signAll(chain));
  });

async function measureOn(chain: UsdcChain, payments: readonly Signed[]): Promise<BatchGas> {
  const [first, ...others] = payments;
  if (first === undefined) throw new Error("Nothing to measure.");
  const alone = await gasOf(chain, { to: BASE.usdc.address, data: singleCall(first), settles: 1 });
  const batch: Partial<Record<Size, number>> = {};
  const multicall3: Partial<Record<Size, number>> = {};
  for (const size of SIZES) {
    const some = payments.slice(0, size);
    const [ours, peer] = [await gasOf(chain, batchOf(some)), await gasOf(chain, multicallOf(some))];
    [batch[size], multicall3[size]] = [Math.round(ours / size), Math.round(peer / size)];
  }
  const nine = others.slice(0, 9);
  const ten = [...nine.slice(0, 4), first, ...nine.slice(4)];
  const before = await gasOf(chain, batchOf(nine));
  const tenth: Partial<Record<Change, number>> = {};
  for (const change of CHANGE_NAMES) {
    const id = await chain.client.snapshot();
    await CHANGES[change](chain, first);
    tenth[change] = (await gasOf(chain, { ...batchOf(ten), settles: change === "pays as signed" ? 10 : 9 })) - before;
    await chain.client.revert({ id });
  }
  return { alone, batch, multicall3, leastCap: await findLeastCap(chain), tenth } as BatchGas;
}

interface Settlement {
  readonly to: Address;
  readonly data: Hex;
  /** The number of payments. */
  readonly settles: number;
}

/** Returns the gas of a transaction, which is then reverted. */
async function gasOf({ client, balanceOf }: UsdcChain, { to, data, settles }: Settlement): Promise<number> {
  const id = await client.snapshot();
  const before = await balanceOf(PAY_TO);
  const gas = 60_000n + 130_000n * BigInt(settles + 1);
  const hash = await client.sendTransaction({ account: RELAYER, chain: null, to, data, gas });
  const { gasUsed } = await client.waitForTransactionReceipt({ hash });
  const paid = (await balanceOf(PAY_TO)) - before;
  if (paid !== BigInt(settles) * VALUE)
    throw new Error(`${settles} payments should have settled; the payee got ${paid}.`);
  await client.revert({ id });
  return Number(gasUsed);
}

async function findLeastCap({ client, fund }: UsdcChain): Promise<number> {
  const payer = privateKeyToAccount(keccak256(toHex("dearest payer")));
  const to: Address = "0x11cc22aa33dd44bb55ee66ff778899aabbccddee";
  await fund(payer.address, VALUE);
  const signed = await sign(payer, {
    to,
    nonce: keccak256(toHex("dearest nonce")),
    now: (await client.getBlock()).timestamp,
  });
  let [little, enough] = [20_000n, GAS_CAP];
  while (enough - little > 1n) {
    const gasCap = (little + enough) / 2n;
    const data = settleCall([signed], { token: BASE.usdc.address, to, gasCap });
    const { data: masks = "0x" } = await client.call({ to: SETTLEMENT_BATCH.address, data });
    const [failed] = decodeFunctionResult({ abi: settlementBatchAbi, functionName: "settle", data: masks });
    [little, enough] = failed === 0n ? [little, gasCap] : [gasCap, enough];
  }
  return Number(enough);
}

/** One payment each by as many payers as the largest batch needs. Keys and nonces are the same in every run. */
async function signAll(chain: UsdcChain): Promise<readonly Signed[]> {
  const payments: Signed[] = [];
  const now = (await chain.client.getBlock()).timestamp;
  for (let n = 0; n < Math.max(...SIZES); n++) {
    const payer = privateKeyToAccount(keccak256(toHex(`payer ${n}`)));
    await chain.fund(payer.address, HELD);
    payments.push(await sign(payer, { to: PAY_TO, nonce: keccak256(toHex(`nonce ${n}`)), now }));
  }
  return payments;
}

interface Terms {
  readonly to: Address;
  readonly nonce: Hex;
  /** The chain's time, in seconds. */
  readonly now: bigint;
}

async function sign(payer: PrivateKeyAccount, { to, nonce, now }: Terms): Promise<Signed> {
  const window = { validAfter: now - 600n, validBefore: now + 3_600n };
  const authorization = { from: payer.address, to, value: VALUE, nonce, ...window };
  return { authorization, signature: await signAuthorization(payer, BASE, authorization) };
}

const batchOf = (payments: readonly Signed[]): Settlement => ({
  to: SETTLEMENT_BATCH.address,
  data: settleCall(payments, { token: BASE.usdc.address, to: PAY_TO, gasCap: GAS_CAP }),
  settles: payments.length,
});

function multicallOf(payments: readonly Signed[]): Settlement {
  const call = (signed: Signed) => ({ target: BASE.usdc.address, allowFailure: true, callData: splitCall(signed) });
  const data = encodeFunctionData({ abi: multicall3Abi, functionName: "aggregate3", args: [payments.map(call)] });
  return { to: MULTICALL3, data, settles: payments.length };
}

/** The call with the signature as bytes, as the service sends it. */
function singleCall({ authorization, signature }: Signed): Hex {
  const { from, to, value, validAfter, validBefore, nonce } = authorization;
  const args = [from, to, value, validAfter, validBefore, nonce, signature] as const;
  return encodeFunctionData({ abi: usdcAbi, functionName: "transferWithAuthorization", args });
}

/** The call with the signature as v, r and s, which is cheaper. */
function splitCall({ authorization, signature }: Signed): Hex {
  const { from, to, value, validAfter, validBefore, nonce } = authorization;
  const { r, s, yParity } = parseSignature(signature);
  const args = [from, to, value, validAfter, validBefore, nonce, 27 + yParity, r, s] as const;
  return encodeFunctionData({ abi: usdcAbi, functionName: "transferWithAuthorization", args });
}
