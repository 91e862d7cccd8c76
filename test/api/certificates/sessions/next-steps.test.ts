import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { BEHAVIORAL_PRODUCTS } from "../../../../api/certificates/products.ts";
import { forFile } from "../../../support/for-file.ts";
import { type Answer, challengeOf, post, v2 } from "../../../support/payments/requests.ts";
import { type Signed, signPayment } from "../../../support/payments/signing.ts";
import {
  type LossyRun,
  offered,
  passWindow,
  pay,
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
