import { expect } from "vitest";
import { STATEMENT_PRICE } from "../../../api/settlement-status/statement-request.ts";
import { parseKeySet } from "../../../packages/verifier/src/key-set.ts";
import { checkStatement } from "../../../packages/verifier/src/settlement/check-statement.ts";
import type { JsonObject } from "../../../packages/verifier/src/strict-json.ts";
import type { BaseLike } from "../base-like/base-like.ts";
import { eventually } from "../eventually.ts";
import { post, send, v2 } from "../payments/requests.ts";
import { newPayer, type Signed, signPayment } from "../payments/signing.ts";
import type { TestService } from "../service/service.ts";

/** An authorization in x402's format. */
export const wire = ({ authorization: { from, to, value, validAfter, validBefore, nonce } }: Signed) => ({
  from,
  to,
  value: String(value),
  validAfter: String(validAfter),
  validBefore: String(validBefore),
  nonce,
});

/** Buys and checks signed statements of a service on a chain like Base. */
export function statementsOf(base: BaseLike, service: TestService) {
  const { chain } = base;
  /** Buys a signed statement, and repeats the request with the same payment. */
  async function buy(body: object) {
    const payer = await newPayer(chain);
    await base.caughtUp();
    const payment = await signPayment(payer, { value: STATEMENT_PRICE, validBefore: base.unixNow() + 120n });
    const pay = () => post(`${service.url}/settlement`, v2(payment), JSON.stringify(body));
    let answer = await pay();
    await eventually(async () => {
      if (answer.status === 503) answer = await pay();
      return answer.status === 503;
    }, false);
    return { payer, answer, again: pay };
  }

  async function statementOf({ answer, again }: Awaited<ReturnType<typeof buy>>) {
    expect(answer.status).toBe(200);
    const replay = await again();
    expect([replay.headers.get("x-idempotent-replay"), replay.text]).toEqual(["true", answer.text]);
    const keys = await parseKeySet((await send(`${service.url}/.well-known/jwks.json`)).text);
    return {
      answer,
      check: (authorization?: JsonObject, signature?: string) =>
        checkStatement(answer.text, { keys, authorization, signature, at: base.now() }),
    };
  }
  return { buy, statementOf };
}
