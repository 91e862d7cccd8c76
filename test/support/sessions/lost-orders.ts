import { expect } from "vitest";
import { retry } from "../../../api/certificates/kinds/retry.ts";
import type { OrderNumber, Way } from "../../../api/certificates/retry/lost-order.ts";
import type { Authorization } from "../../../api/platform/chain/view.ts";
import { expectProblem } from "../payments/expectations.ts";
import { type Answer, post, v2 } from "../payments/requests.ts";
import { newPayer, type Signed, signPayment, unixNow } from "../payments/signing.ts";
import { ENTRY, PURSE, type Run, type RunPlan } from "./runs.ts";
import type { Ground } from "./stage.ts";

export const [FIRST_PRICE, SECOND_PRICE] = retry.orders;
export const priceOf = (order: OrderNumber): bigint => retry.orders[order - 1] as bigint;

/** The service's random choices for the sessions of this file, before a test overrides them. */
export const drawn: { readonly lost: OrderNumber; readonly way: Way }[] = [];

/** A session of the retry safety test whose entry is paid, from its agent's perspective. */
export interface LossyRun extends Pick<Run, "account" | "at" | "id"> {
  readonly product: "retry";
  readonly token: string;
  /** The order whose response is lost. */
  readonly lost: OrderNumber;
  readonly plain: OrderNumber;
}

interface LossyPlan extends Pick<RunPlan, "account"> {
  /** How the response is lost. By default the service chooses at random. */
  readonly way?: Way;
  readonly lost?: OrderNumber;
}

export const startLossy = async (ground: Ground & { readonly at: string }, plan: LossyPlan = {}): Promise<LossyRun> => {
  const account = plan.account ?? (await newPayer(ground.chain, PURSE));
  const signed = await signPayment(account, { value: ENTRY });
  const answer = await post(`${ground.at}/test/retry/start`, v2(signed));
  expect({ status: answer.status, text: answer.text }).toMatchObject({ status: 200 });
  return openedLossy(ground, account, { body: answer.body, plan });
};

/** The run of a start's response, with the lost order of the test's choice. */
async function openedLossy(
  { owner, at }: Pick<Ground, "owner"> & { readonly at: string },
  account: LossyRun["account"],
  { body, plan }: { readonly body: Record<string, unknown>; readonly plan: LossyPlan },
): Promise<LossyRun> {
  const { next, deliverable } = body as { next: { url: string }; deliverable: { id: string } };
  const { id } = deliverable;
  const before = await owner.query<{ bait_first: boolean; way: Way }>(
    "SELECT bait_first, way FROM lost_order JOIN test_session ON id = session WHERE id = $1",
    [id],
  );
  const [own] = before.rows;
  if (own === undefined) throw new Error(`no session ${id}`);
  drawn.push({ lost: own.bait_first ? 1 : 2, way: own.way });
  const lost = plan.lost ?? (own.bait_first ? 1 : 2);
  await owner.query("UPDATE lost_order SET way = $2 WHERE session = $1", [id, plan.way ?? own.way]);
  await owner.query("UPDATE test_session SET bait_first = $2 WHERE id = $1", [id, lost === 1]);
  const token = new URL(next.url).searchParams.get("session") ?? "";
  const run = { product: "retry", account, at, id, token, lost, plain: lost === 1 ? 2 : 1 } as const;
  const { pathname, search } = new URL(next.url);
  expect(`${at}${pathname}${search}`).toBe(orderUrl(run, 1));
  return run;
}

export const orderUrl = (
  { at, account, token }: Pick<LossyRun, "at" | "account" | "token">,
  order: OrderNumber,
): string => `${at}/test/retry/attempt?wallet=${account.address.toLowerCase()}&session=${token}&order=${order}`;

/** Makes an unpaid call. Its terms must be the order's. */
export async function offered(run: LossyRun, order: OrderNumber): Promise<Answer> {
  const answer = await post(orderUrl(run, order));
  expect({ status: answer.status, text: answer.text }).toMatchObject({ status: 402 });
  return answer;
}

export const signOrder = (run: LossyRun, order: OrderNumber, fields: Partial<Authorization> = {}): Promise<Signed> =>
  signPayment(run.account, { value: priceOf(order), validBefore: unixNow() + 60n, ...fields });

/** Makes a paid call. Returns null if the connection closes without a response. */
export const pay = (run: LossyRun, order: OrderNumber, signed: Signed): Promise<Answer | null> =>
  post(orderUrl(run, order), v2(signed)).catch(() => null);

/** Requests and pays an order. */
export async function buy(run: LossyRun, order: OrderNumber): Promise<{ signed: Signed; answer: Answer | null }> {
  await offered(run, order);
  const signed = await signOrder(run, order);
  return { signed, answer: await pay(run, order, signed) };
}

/** The client's view of each way to lose a response. */
export const SEEN: Readonly<Record<Way, (answer: Answer | null) => void>> = {
  connection_closed: (answer) => expect(answer).toBeNull(),
  unavailable(answer) {
    expectProblem(answer as Answer, 503, "payment_pending");
    expect(answer?.headers.get("retry-after")).toMatch(/^\d+$/);
    expect(answer?.headers.get("payment-response")).toBeNull();
  },
  late: (answer) => expect([answer?.status, answer?.body.status]).toEqual([200, "action_required"]),
  settlement_pending(answer) {
    expect([answer?.status, answer?.body.code, answer?.headers.get("retry-after")]).toEqual([
      503,
      "payment_pending",
      "2",
    ]);
    const header = Buffer.from(String(answer?.headers.get("payment-response")), "base64").toString();
    expect(JSON.parse(header)).toMatchObject({
      success: false,
      errorReason: "settlement_pending",
      network: "eip155:8453",
    });
  },
  server_error: (answer) => expectProblem(answer as Answer, 500, "internal_error"),
};

/** Ages a session past its window, with everything that was lost. */
export const passWindow = async ({ owner }: Pick<Ground, "owner">, { id }: Pick<LossyRun, "id">): Promise<void> => {
  const earlier = ["lost_at", "sent_again_at", "asked_at"].map((column) => `${column} = ${column} - interval '2 min'`);
  await owner.query(`UPDATE lost_order SET ${earlier.join(", ")} WHERE session = $1`, [id]);
};
