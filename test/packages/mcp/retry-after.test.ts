import { describe, expect, test } from "vitest";
import { keptIn } from "../../../packages/mcp/src/pending-payments.ts";
import { startTestChain } from "../../support/chain/chain.ts";
import { forFile } from "../../support/for-file.ts";
import { call, connectLocal, counting, newStateFolder, roadTo } from "../../support/packages/mcp.ts";
import { newPayer } from "../../support/payments/signing.ts";
import { startService } from "../../support/service/service.ts";

const CLAIM = { category: "payload-hash", conditions: { payload_text: "as agreed", expected_sha256: "0".repeat(64) } };

const chain = await forFile(startTestChain());
const service = await forFile(startService({ chain }));
const { payer, signatures } = counting(await newPayer(chain));

describe("a service that asks to wait", () => {
  const DETAIL = "3 payments of this payer were mined within an hour without settling.";
  /** Answers the first paid request by itself, and records when each came. */
  const asking = (retryAfter: string) => {
    const open = roadTo(service.url, "open");
    const paid: number[] = [];
    const send: typeof open.send = async (request) => {
      if (request.headers?.["PAYMENT-SIGNATURE"] === undefined) return open.send(request);
      paid.push(performance.now());
      const problem = { code: "payer_refused", detail: DETAIL };
      return paid.length > 1
        ? open.send(request)
        : { status: 429, headers: new Headers({ "retry-after": retryAfter }), text: JSON.stringify(problem) };
    };
    return { service: { ...open, send }, paid };
  };

  test("for long is asked once, and the agent is told how long", async () => {
    for (const retryAfter of ["3540", new Date(Date.now() + 3_540_000).toUTCString()]) {
      const { service: road, paid } = asking(retryAfter);
      const answer = await call(
        await connectLocal({ service: road, payer, pending: keptIn(newStateFolder()) }),
        "arbiter_verify",
        { ...CLAIM, deal_ref: retryAfter },
      );
      expect(answer).toMatchObject({ isError: false, structured: { status: "pending" } });
      const [, seconds] = /429: 3 payments .* It asks to wait for (\d+) seconds before that\. /.exec(answer.text) ?? [];
      expect(Number(seconds)).toBeGreaterThan(3_000);
      expect(Number(seconds)).toBeLessThanOrEqual(3_540);
      expect(paid).toHaveLength(1);
    }
  });

  test("for a moment gets the same payment once that is over", async () => {
    const before = signatures();
    const { service: road, paid } = asking("2");
    expect(
      await call(await connectLocal({ service: road, payer, pending: keptIn(newStateFolder()) }), "certify", {
        test: "basic",
      }),
    ).toMatchObject({
      isError: false,
      structured: { status: "paid" },
    });
    expect([paid.length, signatures() - before]).toEqual([2, 1]);
    expect((paid[1] ?? 0) - (paid[0] ?? 0)).toBeGreaterThan(1_900);
  });
});
