import { hashMessage } from "viem";
import { ExaminersFault } from "../../packages/seller-check/src/exam/examiners-fault.ts";
import type { Address, Hex } from "../kernel/wallet.ts";
import { isAccountSignature } from "../payments/signature.ts";

/** A signature by which a payee consents. */
export interface PayeeSignature {
  readonly payTo: Address;
  readonly text: string;
  readonly signature: Hex;
}

/** What a payee's contract says of a signature (ERC-1271), as one node shows it at one of its blocks. */
export interface ContractWord {
  /** The block's time, in Unix seconds. */
  readonly time: number;
  readonly isSigned: boolean;
}

export interface StandingParts {
  readonly word: (signed: PayeeSignature) => Promise<ContractWord>;
  readonly now: () => Date;
  readonly sleep: (ms: number) => Promise<unknown>;
}

/** Nodes behind one address take turns: of so many readings, one is of a node that keeps up. */
const READINGS = 3;
/** How long readings get to agree. */
const AGREES_WITHIN_MS = 20_000;
const LOOK_AGAIN_MS = 1_000;

/** Whether the wallet's key or the wallet's code signed; null if three readings of the chain do not agree. */
export async function isSignedBy(
  { payTo, text, signature }: PayeeSignature,
  verifyContractSignature: (wallet: Address, digest: Hex, signature: Hex) => Promise<boolean>,
): Promise<boolean | null> {
  const digest = hashMessage(text);
  if (isAccountSignature(payTo, digest, signature)) return true;
  const words: boolean[] = [];
  while (words.length < READINGS) words.push(await verifyContractSignature(payTo, digest, signature));
  return agreed(words);
}

/**
 * Whether a signature that gave consent still stands: that of a key does, and a contract may say otherwise by now. Three
 * readings in a row have to agree, each at a block that is not older than the question. A contract that keeps saying
 * different things has not consented.
 * @throws ExaminersFault if the chain does not say
 */
export async function stillSigned(signed: PayeeSignature, { word, now, sleep }: StandingParts): Promise<boolean> {
  if (isAccountSignature(signed.payTo, hashMessage(signed.text), signed.signature)) return true;
  const askedAt = now().getTime();
  const notBefore = Math.floor(askedAt / 1000);
  let isLate = false;
  let cause: unknown;
  for (;;) {
    const words = await inARow(() => word(signed)).catch((error: unknown) => {
      cause = error;
      return [];
    });
    isLate = words.length > 0 && words.every(({ time }) => time >= notBefore);
    const said = agreed(words.map(({ isSigned }) => isSigned));
    if (isLate && said !== null) return said;
    if (now().getTime() >= askedAt + AGREES_WITHIN_MS) break;
    await sleep(LOOK_AGAIN_MS);
  }
  if (isLate) return false;
  throw new ExaminersFault("The chain does not say whether the payee's contract still consents.", { cause });
}

async function inARow<T>(look: () => Promise<T>): Promise<readonly T[]> {
  const seen: T[] = [];
  while (seen.length < READINGS) seen.push(await look());
  return seen;
}

const agreed = (words: readonly boolean[]): boolean | null =>
  words.every((one) => one) ? true : words.some((one) => one) ? null : false;
