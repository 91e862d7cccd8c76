import type { LocalAccount } from "viem";
import { generatePrivateKey, privateKeyToAccount } from "viem/accounts";
import {
  chainLedger,
  type ExamOrder,
  type ExamReport,
  examine,
  httpTransport,
  type Ledger,
  type Resource,
  type Transport,
} from "../../../packages/seller-check/src/index.ts";
import type { TestChain } from "../chain/chain.ts";

interface Exam {
  readonly resource: Pick<Resource, "url"> & Partial<Resource>;
  readonly other?: ExamOrder["other"];
  readonly isAllowed?: (url: string) => boolean;
  readonly transport?: Transport;
  readonly ledger?: Ledger;
  /** A payer with money. Default: a new one. */
  readonly payer?: LocalAccount;
}

/** The factor by which an exam's waiting times are shortened. */
const HASTE = 20;

/** Examines a seller on a local chain with its own payer. Pauses between retries are short. */
export async function holdExam(
  chain: TestChain,
  { resource, other = null, isAllowed = () => true, ...parts }: Exam,
): Promise<ExamReport> {
  const payer = parts.payer ?? privateKeyToAccount(generatePrivateKey());
  if (parts.payer === undefined) await chain.fund(payer.address, 1_000_000n);
  return examine(
    { ...(await orderOf(chain, resource)), other, isAllowed },
    { ...(await partsOf(chain, parts)), payer },
  );
}

/** Does the same with a price ceiling below every offer, so only the quotes are examined. */
export async function lookAt(chain: TestChain, { resource, ...parts }: Omit<Exam, "other">): Promise<ExamReport> {
  const payer = parts.payer ?? privateKeyToAccount(generatePrivateKey());
  const { payable, ...order } = await orderOf(chain, resource);
  const asked = { ...order, payable: { ...payable, ceiling: 0n }, other: null };
  return examine(asked, { ...(await partsOf(chain, parts)), payer });
}

async function orderOf(chain: TestChain, resource: Exam["resource"]) {
  const { id, usdc } = chain.network;
  const payable = { network: id, asset: usdc.address, ceiling: 300_000n };
  return { resource: { method: "GET", body: null, contentType: "application/json", ...resource }, payable };
}

async function partsOf(chain: TestChain, { transport = httpTransport(), ledger }: Partial<Exam>) {
  const began = Date.now();
  return {
    transport,
    ledger: ledger ?? (await chainLedger(chain.rpcUrl)),
    sleep: (ms: number) => new Promise((resolve) => setTimeout(resolve, ms / HASTE)),
    now: () => began + (Date.now() - began) * HASTE,
  };
}

/** The outcomes by check. */
export const outcomes = ({ results }: ExamReport): Record<string, string> =>
  Object.fromEntries(results.map(({ check, outcome }) => [check, outcome]));

/** The statements that do not hold. */
export const failedStatements = ({ results }: ExamReport): readonly string[] =>
  results.flatMap(({ check, findings }) =>
    findings.filter(({ holds }) => !holds).map(({ statement }) => `${check}: ${statement}`),
  );

/** The codes of the findings that do not hold. */
export const failedCodes = ({ results }: ExamReport): readonly (string | undefined)[] =>
  results.flatMap(({ findings }) => findings.filter(({ holds }) => !holds).map(({ code }) => code));
