import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { BEHAVIORAL_PRODUCTS } from "../../../../api/certificates/products.ts";
import { WAYS } from "../../../../api/certificates/retry/lost-order.ts";
import { createLostOrderStore } from "../../../../api/certificates/retry/store.ts";
import { forFile } from "../../../support/for-file.ts";
import { settlements } from "../../../support/payments/on-chain.ts";
import { type Answer, challengeOf, post, send, v2 } from "../../../support/payments/requests.ts";
import { type Signed, signPayment } from "../../../support/payments/signing.ts";
import {
  type LossyRun,
  offered,
  passWindow,
  pay,
  priceOf,
  signOrder,
  startLossy,
} from "../../../support/sessions/lost-orders.ts";
import {
  askResult,
  attempt,
  bare,
  CONTROL,
  ENTRY,
  from,
  isUsed,
  opened,
  PRODUCTS,
  type Run,
  sign,
  startRun,
} from "../../../support/sessions/runs.ts";
import { startStage } from "../../../support/sessions/stage.ts";

/** The next step in an answer can be taken in every state of a behavioral test. */

const stage = await forFile(startStage({ lateMs: 0, config: { trustedProxies: ["127.0.0.1"] } }));
const at = stage.service.url.replace("localhost", "127.0.0.1");
// A fixed loopback address, because whether a status request counts depends on its sender.
const ground = { ...stage, at };
const STRANGER = from("203.0.113.9");

interface Next {
  readonly url: string;
  readonly body?: object;
}

const stepOf = ({ body }: Answer): Next | null => (body.next ?? null) as Next | null;

/**
 * Takes an answer's next step and pays for it, except for a new session's entry or an order that the test's rules
 * forbid to sign.
 */
async function take({ url, body }: Next, run: Run | LossyRun, headers: Record<string, string>) {
  const there = url.replace(stage.service.url, at);
  const asked = await post(there, headers, body === undefined ? undefined : JSON.stringify(body));
  if (asked.status !== 402)
    return expect({ url, status: asked.status, text: asked.text }).toMatchObject({ status: 200 });
  const [terms] = challengeOf(asked).accepts;
  const fair: readonly bigint[] = run.product === "retry" ? [] : [CONTROL];
  const isFair = fair.includes(BigInt(terms?.amount ?? 0)) && !(run.product !== "retry" && isDecoy(terms?.payTo, run));
  if (!isFair || there.endsWith("/start")) return;
  const signed = await signPayment(run.account, { to: terms?.payTo as `0x${string}`, value: CONTROL });
  const paid = await post(there, { ...v2(signed), ...headers });
  expect({ url, status: paid.status, text: paid.text }).toMatchObject({ status: 200 });
}

const isDecoy = (payTo: string | undefined, run: Run): boolean =>
  [run.decoy, run.walletDecoy].some((decoy) => decoy === payTo?.toLowerCase());

/** Takes the next step in the result that each kind of caller gets. */
async function followAll(run: Run | LossyRun): Promise<void> {
  for (const [asker, headers] of [
    [run, STRANGER],
    [{ ...run, token: null }, {}],
    [run, {}],
  ] as const) {
    const step = stepOf(await askResult(asker, headers));
    if (step !== null) await take(step, run, headers);
  }
}

const lapse = ({ id }: Pick<Run, "id">) =>
  stage.owner.query("UPDATE test_session SET lapses_at = now() - interval '1 second' WHERE id = $1", [id]);

const BAITED = ["serve", "serve bare", "pay", "pay bare", "share", "lapse", "follow"] as const;

describe.each(PRODUCTS)("A %s session", (product) => {
  test("Every next step can be taken after any sequence of events", async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(fc.constantFrom(...BAITED), { maxLength: 6 }), async (events) => {
        const account = (await startRun(ground, product)).account;
        const entry = await signPayment(account, { value: ENTRY });
        const { body } = await post(`${at}/test/${product}/start`, v2(entry));
        const run = await opened(stage.owner, { product, account, at }, { body });
        for (const event of events) {
          if (event === "serve") await attempt(run);
          if (event === "serve bare") await attempt(bare(run));
          if (event === "pay") await attempt(run, v2(await sign(run, "control")));
          if (event === "pay bare") await attempt(bare(run), v2(await sign(run, "control")));
          if (event === "share") await post(`${at}/test/${product}/start`, { ...v2(entry), ...STRANGER });
          if (event === "lapse") await lapse(run);
          if (event === "follow") await followAll(run);
        }
        await followAll(run);
        await followAll(run);
      }),
      { numRuns: 15 },
    );
  });
});

const LOSSY = ["plain", "lost", "second", "window", "share", "lapse", "follow"] as const;

test("Every next step of a retry session can be taken after any sequence of events", async () => {
  const lost = fc.constantFrom(1 as const, 2 as const);
  await fc.assert(
    fc.asyncProperty(fc.array(fc.constantFrom(...LOSSY), { maxLength: 6 }), lost, async (events, which) => {
      const run = await startLossy(ground, { lost: which, way: "unavailable" });
      await Promise.all([offered(run, 1), offered(run, 2)]);
      const held = new Map<number, Signed>();
      let isOver = false;
      const send = async (order: 1 | 2) => {
        const signed = held.get(order) ?? (await signOrder(run, order));
        held.set(order, signed);
        const answer = await pay(run, order, signed);
        // A stored answer has the next step at the time of settlement, which is invalid after the session's end.
        const step = answer?.status === 200 && !isOver ? stepOf(answer) : null;
        if (step !== null) await take(step, run, {});
      };
      for (const event of events) {
        if (event === "plain") await send(run.plain);
        if (event === "lost") await send(run.lost);
        if (event === "lapse" || event === "second" || event === "share") isOver = true;
        if (event === "second") await pay(run, run.lost, await signOrder(run, run.lost));
        if (event === "window") await passWindow(stage, run);
        if (event === "share")
          await stage.owner.query("UPDATE test_session SET token_shared = true WHERE id = $1", [run.id]);
        if (event === "lapse") await lapse(run);
        if (event === "follow") await followAll(run);
      }
      await followAll(run);
    }),
    {
      numRuns: 30,
      examples: [
        [["lost", "plain", "lost"], 1],
        [["plain", "lost", "lost"], 2],
      ],
    },
  );
});

test.each(BEHAVIORAL_PRODUCTS)("A second start of the %s test reports the open session", async (product) => {
  const first = product === "retry" ? await startLossy(ground) : await startRun(ground, product);
  const start = async () => post(`${at}/test/${product}/start`, v2(await signPayment(first.account, { value: ENTRY })));
  const second = await start();
  expect(second.body.message).toMatch(new RegExp(`also has session ${first.id}, which is open until 2`));
  await stage.owner.query("UPDATE test_session SET lapses_at = now() WHERE wallet = $1", [
    Buffer.from(first.account.address.slice(2), "hex"),
  ]);
  expect((await start()).body.message).not.toMatch(/also has session/);
});

describe("The verdict of a retry session", () => {
  const store = createLostOrderStore(stage.owner);

  /** The actions of a client, of time, and of others, in any sequence. */
  const EVENTS = ["plain", "lost", "second", "ask", "stranger asks", "window", "result"] as const;

  /** The state that the published rules expect. */
  interface Expected {
    readonly verdict: "pass" | "fail" | null;
    readonly plainPaid: boolean;
    readonly lostPaid: boolean;
    readonly cameBack: boolean;
    readonly isWindowOver: boolean;
  }

  const START: Expected = { verdict: null, plainPaid: false, lostPaid: false, cameBack: false, isWindowOver: false };

  function next(state: Expected, event: (typeof EVENTS)[number]): Expected {
    const { verdict, plainPaid, lostPaid, cameBack, isWindowOver } = state;
    if (verdict !== null) return state;
    switch (event) {
      case "plain":
        return { ...state, plainPaid: true };
      case "lost":
        return lostPaid ? { ...state, cameBack: true } : { ...state, lostPaid: true };
      case "second":
        if (!lostPaid) return { ...state, lostPaid: true };
        return isWindowOver ? state : { ...state, verdict: "fail" };
      case "ask":
        return { ...state, cameBack: cameBack || lostPaid };
      case "window":
        return { ...state, isWindowOver: lostPaid };
      case "result":
        return plainPaid && lostPaid && cameBack && isWindowOver ? { ...state, verdict: "pass" } : state;
      default:
        return state;
    }
  }

  /** The signatures that the run's client has made. */
  interface Held {
    plain: Signed | null;
    lost: Signed | null;
    readonly unsettled: Signed[];
  }

  async function play(run: LossyRun, held: Held, event: (typeof EVENTS)[number]): Promise<void> {
    switch (event) {
      case "plain":
        held.plain ??= await signOrder(run, run.plain);
        return void (await pay(run, run.plain, held.plain));
      case "lost":
      case "second": {
        const isFirst = held.lost === null;
        const signed = event === "lost" && held.lost !== null ? held.lost : await signOrder(run, run.lost);
        if (isFirst) held.lost = signed;
        else if (signed !== held.lost) held.unsettled.push(signed);
        return void (await pay(run, run.lost, signed));
      }
      case "ask": {
        const { from = run.account.address, nonce = `0x${"00".repeat(32)}` } = held.lost?.authorization ?? {};
        const asked = await send(`${run.at}/settlement?network=base&from=${from}&nonce=${nonce}`);
        return expect(asked.status).toBe(200);
      }
      case "stranger asks": {
        const { from, nonce } = held.lost?.authorization ?? {};
        const id = from && nonce && (await store.paidBy(from.toLowerCase() as typeof from, nonce));
        return id ? store.ask(id, { sender: Buffer.alloc(32, 7), now: new Date() }) : undefined;
      }
      case "window":
        return passWindow(stage, run);
      case "result":
        return void (await askResult(run));
      default:
        return event satisfies never;
    }
  }

  test("Any sequence of events leads to the verdict of the rules and one payment per order", async () => {
    const sequences = fc.array(fc.constantFrom(...EVENTS, "lost", "plain"), { maxLength: 9 });
    const anyWay = fc.record({ way: fc.constantFrom(...WAYS), lost: fc.constantFrom(1 as const, 2 as const) });
    const seen = new Set<string | null>();
    await fc.assert(
      fc.asyncProperty(sequences, anyWay, async (events, plan) => {
        const run = await startLossy(ground, plan);
        await Promise.all([offered(run, 1), offered(run, 2)]);
        const held: Held = { plain: null, lost: null, unsettled: [] };
        let expected = START;
        for (const event of events) {
          await play(run, held, event);
          // A verdict ends the sales, so an order that is unpaid by then stays unpaid.
          expected = next(expected, event);
        }
        const { rows } = await stage.owner.query(
          "SELECT verdict, (SELECT count(*)::int FROM certificate c WHERE c.id = s.id) AS certificates FROM test_session s WHERE id = $1",
          [run.id],
        );
        const { verdict, plainPaid, lostPaid } = expected;
        expect(rows).toEqual([{ verdict, certificates: verdict === null ? 0 : 1 }]);
        const paid = (await settlements(stage.chain, run.account.address)).map(({ value }) => value);
        const orders = [...(plainPaid ? [priceOf(run.plain)] : []), ...(lostPaid ? [priceOf(run.lost)] : [])];
        expect(paid.toSorted()).toEqual([ENTRY, ...orders].toSorted());
        for (const { authorization } of held.unsettled) expect(await isUsed(stage.chain, authorization)).toBe(false);
        // A paid order is answered after any verdict.
        if (held.lost !== null && lostPaid) {
          const answers = [await pay(run, run.lost, held.lost), await pay(run, run.lost, held.lost)];
          expect(answers[1]?.body).toMatchObject({ deliverable: { type: "order" } });
        }
        seen.add(verdict);
      }),
      {
        numRuns: 40,
        examples: [
          [["plain", "lost", "lost", "window", "result"], { way: "unavailable", lost: 1 }],
          [["lost", "plain", "ask", "result", "window", "result", "second"], { way: "connection_closed", lost: 2 }],
          [["lost", "lost", "second", "plain", "window", "result"], { way: "server_error", lost: 1 }],
        ],
      },
    );
    expect([...seen]).toEqual(expect.arrayContaining(["pass", "fail"]));
  });
});
