import type { LocalAccount } from "viem";
import { EXAM_PRICE } from "../../../api/sellers/products.ts";
import { type Answer, post, send, v2 } from "../payments/requests.ts";
import { type Signed, signPayment } from "../payments/signing.ts";
import { waitUntil } from "../wait-until.ts";

/** The account that pays in the tests' exams. */
export const EXAM_KEY = `0x${"e8".repeat(32)}` as const;

const JSON_BODY = { "content-type": "application/json" };

/** The report of `GET /test/seller` on a seller, and on a wallet that wants to buy its exam. */
export const inspectSeller = async (
  service: string,
  url: string,
  wallet?: string,
): Promise<Record<string, unknown>> => {
  const query = new URLSearchParams({ url, ...(wallet !== undefined && { wallet }) });
  const { body } = await send(`${service}/test/seller?${query}`);
  return body.seller as Record<string, unknown>;
};

/** The consent line with which the wallet may buy exams of the whole origin. */
export async function lineFor(
  service: string,
  url: string,
  { address }: Pick<LocalAccount, "address">,
): Promise<string> {
  const { consent } = (await inspectSeller(service, url, address)) as { consent: { file: { line: string } } };
  return consent.file.line;
}

export interface Bought {
  readonly answer: Answer;
  readonly signed: Signed;
  readonly again: () => Promise<Answer>;
}

/** Requests without a payment first, as every buyer does, and then pays. */
export async function buyExam(service: string, payer: LocalAccount, order: Record<string, unknown>): Promise<Bought> {
  const body = JSON.stringify(order);
  await post(`${service}/test/seller`, JSON_BODY, body);
  const signed = await signPayment(payer, { value: EXAM_PRICE });
  const again = () => post(`${service}/test/seller`, { ...JSON_BODY, ...v2(signed) }, body);
  return { answer: await again(), signed, again };
}

/** The exam's record after its end. */
export async function ended(service: string, id: unknown): Promise<Record<string, unknown>> {
  let record: Record<string, unknown> = {};
  const isOver = async () => {
    record = (await send(`${service}/exam/${id}`)).body;
    return record.status !== "incomplete";
  };
  if (!(await waitUntil(isOver, 120_000, 200))) throw new Error(`the exam ${id} did not end`);
  return record;
}

/** Outcomes by check. */
export const outcomesOf = ({ checks }: Record<string, unknown>): Record<string, string> =>
  Object.fromEntries((checks as { check: string; outcome: string }[]).map(({ check, outcome }) => [check, outcome]));
