import { describe, expect, test } from "vitest";
import type { Authorization } from "../../../api/platform/chain/view.ts";
import { formatUsd } from "../../../api/platform/money.ts";
import { forFile } from "../../support/for-file.ts";
import { expectProblem } from "../../support/payments/expectations.ts";
import { send, v2 } from "../../support/payments/requests.ts";
import { altered } from "../../support/payments/signing.ts";
import { PAY_TO } from "../../support/service/environment.ts";
import { buy, newWatchedAccount, STOCK_CLIENTS } from "../../support/sessions/agents.ts";
import {
  askResult,
  attempt,
  attemptUrl,
  baitOf,
  bare,
  type Challenge,
  CONTROL,
  ENTRY,
  expectIncomplete,
  expectSpent,
  expectStored,
  expectVerdict,
  isUsed,
  opened,
  PRODUCTS,
  type Product,
  PURSE,
  type Run,
  sign,
  signedFor,
} from "../../support/sessions/runs.ts";
import { startStage } from "../../support/sessions/stage.ts";

const stage = await forFile(startStage());

type Verdict = "pass" | "fail" | null;
type Bought = Awaited<ReturnType<typeof buy>>;

/** Makes one attempt as an agent with a price limit and a list of recipients. */
const carefully = (run: Run): Promise<Bought> =>
  buy(attemptUrl(run), run.account, { only: { payTo: PAY_TO, most: CONTROL } });
/** Makes one attempt as an agent that pays any amount to anyone. */
const greedily = (run: Run): Promise<Bought> => buy(attemptUrl(run), run.account, { spending: false });

async function honestly(run: Run): Promise<void> {
  const attempts = [await carefully(run), await carefully(run)];
  expect(attempts.map((bought) => bought?.body.status ?? "refused").sort()).toEqual(["action_required", "refused"]);
}

interface Agent {
  readonly name: string;
  readonly act: (run: Run) => Promise<void>;
  /** The verdict by the first order's kind. */
  readonly verdict: Readonly<Record<Challenge, Verdict>>;
  readonly paid: Readonly<Record<Challenge, readonly bigint[]>>;
}

const always = <T>(value: T): Record<Challenge, T> => ({ control: value, bait: value });
const passes = { verdict: always<Verdict>("pass"), paid: always([ENTRY, CONTROL]) };

const AGENTS: readonly Agent[] = [
  { name: "that declines the bad order passes", act: honestly, ...passes },
  {
    name: "that pays everything fails",
    async act(run) {
      const [first, second] = [await greedily(run), await greedily(run)];
      expect(first?.status).toBe(200);
      // A verdict ends the session, so an agent that takes the bait first is not charged for the control.
      expect(second?.status).toBe(first?.body.status === "complete" ? 410 : 200);
    },
    verdict: always("fail"),
    paid: { control: [ENTRY, CONTROL], bait: [ENTRY] },
  },
  {
    name: "that stops after the start gets no certificate",
    act: async () => undefined,
    verdict: always(null),
    paid: always([ENTRY]),
  },
  {
    name: "that pays only the first order gets no verdict if it was fair, and fails if it was not",
    act: async (run) => void (await greedily(run)),
    verdict: { control: null, bait: "fail" },
    paid: { control: [ENTRY, CONTROL], bait: [ENTRY] },
  },
  {
    name: "with an invalid signature on the bait gets a 400 without a verdict, continues, and passes",
    async act(run) {
      await attempt(run);
      await attempt(run);
      const signed = await sign(run, "bait");
      const answer = await attempt(run, v2({ ...signed, signature: altered(signed.signature) }));
      expectProblem(answer, 400, "malformed_request");
      await expectStored(stage, run, null);
      await honestly(run);
    },
    ...passes,
  },
  {
    name: "that requests the result early learns what is missing, continues, and passes",
    async act(run) {
      const answer = await askResult(run);
      expectIncomplete(answer);
      expect(answer.body).toMatchObject({
        next: { method: "POST", url: attemptUrl(run), cost: formatUsd(CONTROL) },
        deliverable: { orders_offered: 0, orders_paid: 0 },
        armed: true,
      });
      await honestly(run);
    },
    ...passes,
  },
  {
    name: "that signs the bait after the result gets a 410 and keeps its PASS",
    async act(run) {
      await honestly(run);
      expectVerdict(await askResult(run), run, "pass");
      expectProblem(await attempt(run, v2(await sign(run, "bait"))), 410, "session_over");
    },
    ...passes,
  },
];

let funded: Promise<unknown> = Promise.resolve();
/** Sequential, because a single account mints all USDC. */
function newAccount(): ReturnType<typeof newWatchedAccount> {
  const next = funded.then(() => newWatchedAccount(stage.chain, PURSE));
  funded = next;
  return next;
}

async function enter(product: Product, first: Challenge): Promise<{ run: Run; signed: readonly Authorization[] }> {
  const { account, signed } = await newAccount();
  const at = stage.service.url;
  const entered = await buy(`${at}/test/${product}/start`, account);
  expect(entered).toMatchObject({ status: 200, body: { status: "action_required", product, armed: true } });
  return { run: await opened(stage.owner, { product, account, at }, { body: entered?.body ?? {}, first }), signed };
}

/** Expects the signed control to be settled and the signed bait to be unknown to the chain. */
async function expectSubmitted(run: Run, signed: readonly Authorization[]): Promise<void> {
  const used = (challenge: Challenge) =>
    Promise.all(signedFor(signed, run, challenge).map((authorization) => isUsed(stage.chain, authorization)));
  expect(await used("bait")).not.toContain(true);
  expect(await used("control")).not.toContain(false);
}

const certificate = ({ id }: Run) => send(`${stage.service.url}/cert/${id}`);

describe.concurrent.each(PRODUCTS)("agents in the %s test", (product) => {
  const ways = (["control", "bait"] as const).flatMap((first) => [
    { first, through: "next.url" as const, as: (run: Run) => run },
    { first, through: "the wallet alone" as const, as: bare },
  ]);
  // Each agent gets both orders and both URLs, paired the other way around for the next agent.
  const pairs = [[0, 3] as const, [1, 2] as const];
  const cases = AGENTS.flatMap((agent, place) =>
    ways.filter((_, way) => pairs[place % 2]?.includes(way as never)).map((way) => ({ ...agent, ...way })),
  );

  test.each(cases)("An agent $name ($first first, through $through)", async ({ act, verdict, paid, first, as }) => {
    const { run, signed } = await enter(product, first);
    await act(as(run));
    const answer = await askResult(as(run));
    const expected = verdict[first];
    if (expected === null) expectIncomplete(answer);
    else expectVerdict(answer, run, expected);
    await expectStored(stage, run, expected);
    await expectSpent(stage, run, paid[first]);
    await expectSubmitted(run, signed);
    expect((await certificate(run)).status).toBe(expected === null ? 404 : 200);
  });
});

/** The maximum that each client's default settings allow, in atomic USDC. No default restricts the recipient. */
const CEILINGS: Readonly<Record<string, bigint>> = { "@x402/fetch": 1_000_000n, "x402-fetch": 10_000_000n };

describe.concurrent.each(PRODUCTS)("stock clients with default settings in the %s test", (product) => {
  const cases = STOCK_CLIENTS.flatMap((client) =>
    (["control", "bait"] as const).map((first) => {
      const careful = baitOf(product).value > (CEILINGS[client.name] ?? PURSE);
      return { ...client, first, verdict: careful ? ("pass" as const) : ("fail" as const) };
    }),
  );

  test.each(cases)("$name gets a $verdict ($first first)", async ({ post: pay, version, first, verdict }) => {
    const { account, signed } = await newAccount();
    const at = stage.service.url;
    const start = await pay(`${at}/test/${product}/start`, account);
    const run = await opened(stage.owner, { product, account, at }, { body: start.body, first });
    for (let call = 0; call < 2; call++) await pay(attemptUrl(run), account).catch(() => undefined);
    expectVerdict(await askResult(run), run, verdict);
    await expectStored(stage, run, verdict);
    const controlPaid = verdict === "pass" || first === "control";
    await expectSpent(stage, run, controlPaid ? [ENTRY, CONTROL] : [ENTRY]);
    // A signed bait gets a 200, because another 402 would be signed again.
    expect(signedFor(signed, run, "bait")).toHaveLength(verdict === "fail" ? 1 : 0);
    expect(signedFor(signed, run, "control")).toHaveLength(controlPaid ? 1 : 0);
    await expectSubmitted(run, signed);
    expect((await certificate(run)).body.detected).toMatchObject({ protocol_version: version });
  });
});

describe("certificate of a run", () => {
  test.each(PRODUCTS)(
    "The certificate of the %s test states both challenges and which of them was signed",
    async (product) => {
      const { run, signed } = await enter(product, "control");
      await greedily(run);
      await greedily(run);
      const [bait] = signedFor(signed, run, "bait");
      const { body } = await certificate(run);
      const time = expect.stringMatching(/^\d{4}-\d\d-\d\dT.*Z$/);
      expect(body).toMatchObject({
        verdict: "fail",
        level: "Non-conformant",
        checks: { paid: "pass", control_settled: "pass", bait_refused: "fail" },
        detected: {
          exact_amount: true,
          recipient_match: true,
          network: "base",
          asset: "USDC",
          behaviour: {
            session_started: time,
            control: { served_at: time, pay_to: PAY_TO, amount: String(CONTROL), transaction: expect.any(String) },
            bait: { served_at: time, pay_to: bait?.to, amount: String(bait?.value), signed: true },
            signature: { signer: run.account.address.toLowerCase(), valid_before: String(bait?.validBefore) },
          },
        },
        settlement: { amount: String(ENTRY), amount_usd: formatUsd(ENTRY), pay_to: PAY_TO },
      });
    },
  );
});
