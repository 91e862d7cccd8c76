import fc from "fast-check";
import { expect, test } from "vitest";
import { WAYS } from "../../../../api/certificates/retry/lost-order.ts";
import { createLostOrderStore } from "../../../../api/certificates/retry/store.ts";
import { forFile } from "../../../support/for-file.ts";
import { settlements } from "../../../support/payments/on-chain.ts";
import { send } from "../../../support/payments/requests.ts";
import type { Signed } from "../../../support/payments/signing.ts";
import {
  type LossyRun,
  offered,
  passWindow,
  pay,
  priceOf,
  signOrder,
  startLossy,
} from "../../../support/sessions/lost-orders.ts";
import { askResult, ENTRY, isUsed } from "../../../support/sessions/runs.ts";
import { startStage } from "../../../support/sessions/stage.ts";

const stage = await forFile(startStage({ lateMs: 0 }));
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
  // A fixed loopback address, because whether a status request counts depends on its sender.
  const ground = { ...stage, at: stage.service.url.replace("localhost", "127.0.0.1") };
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
