import { generatePrivateKey, privateKeyToAccount } from "viem/accounts";
import {
  chainLedger,
  type ExamOrder,
  type ExamReport,
  examine,
  httpTransport,
  type Resource,
  type Transport,
} from "../../../packages/seller-check/src/index.ts";
import type { TestChain } from "../chain/chain.ts";

interface Exam {
  readonly resource: Pick<Resource, "url"> & Partial<Resource>;
  readonly other?: ExamOrder["other"];
  readonly transport?: Transport;
}

/** Examines a seller on a local chain with a payer of its own; pauses between retries are short. */
export async function holdExam(
  chain: TestChain,
  { resource, other = null, transport = httpTransport() }: Exam,
): Promise<ExamReport> {
  const payer = privateKeyToAccount(generatePrivateKey());
  await chain.fund(payer.address, 1_000_000n);
  const ledger = await chainLedger(chain.rpcUrl);
  const payable = { network: ledger.network, asset: chain.network.usdc.address, ceiling: 300_000n };
  const sleep = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms / 20));
  const whole = { method: "GET", body: null, contentType: "application/json", ...resource };
  return examine({ resource: whole, payable, other }, { ledger, payer, transport, sleep });
}

/** The outcomes by check. */
export const outcomes = ({ results }: ExamReport): Record<string, string> =>
  Object.fromEntries(results.map(({ check, outcome }) => [check, outcome]));

/** The statements that do not hold. */
export const untrue = ({ results }: ExamReport): readonly string[] =>
  results.flatMap(({ check, findings }) =>
    findings.filter(({ holds }) => !holds).map(({ statement }) => `${check}: ${statement}`),
  );
