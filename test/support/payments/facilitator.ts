import type { IncomingHttpHeaders, ServerResponse } from "node:http";
import { text } from "node:stream/consumers";
import type { PaymentPayload, PaymentRequirements } from "@x402/core/types";
import type { Hex } from "viem";
import type { TestChain } from "../chain/chain.ts";
import { serveHttp } from "../http-server.ts";
import { broadcast } from "./on-chain.ts";
import type { Signed } from "./signing.ts";

/** A facilitator's handling of a payment that it should settle. */
export type Conduct = (signed: Signed, answer: ServerResponse) => unknown;

/** A marker in every dishonest response. It must never appear anywhere. */
export const LIAR = "words-of-a-liar";

/** A facilitator over HTTP that is honest unless a test changes its conduct for a payment. */
export interface TestFacilitator {
  readonly url: string;
  /** The number of times that it received each authorization, by nonce. */
  readonly handed: ReadonlyMap<Hex, number>;
  /** The last request that it received, with its headers. */
  readonly asked: () => { readonly body: SettleRequest; readonly headers: IncomingHttpHeaders };
  /** Sets its conduct for this payment. */
  readonly treat: (signed: Signed, conduct: Conduct) => void;
  /** Broadcasts for any caller, one transaction after the other. */
  readonly settle: (signed: Signed) => Promise<Hex>;
  readonly stop: () => void;
}

export async function startFacilitator(chain: TestChain): Promise<TestFacilitator> {
  const handed = new Map<Hex, number>();
  let asked: ReturnType<TestFacilitator["asked"]> | undefined;
  const conducts = new Map<Hex, Conduct>();
  let last: Promise<unknown> = Promise.resolve();
  const settle = (signed: Signed): Promise<Hex> => {
    const sent = last.then(() => broadcast(chain, signed));
    last = sent.catch(() => undefined);
    return sent;
  };
  const honest: Conduct = async (signed, answer) =>
    respond(answer, 200, { success: true, transaction: await settle(signed) });
  const server = await serveHttp(async (request, answer) => {
    if (request.url === "/supported") return respond(answer, 200, { kinds: [] });
    try {
      const body = JSON.parse(await text(request)) as SettleRequest;
      asked = { body, headers: request.headers };
      const signed = signedOf(body);
      const { nonce } = signed.authorization;
      handed.set(nonce, (handed.get(nonce) ?? 0) + 1);
      await (conducts.get(nonce) ?? honest)(signed, answer);
    } catch (error) {
      if (!answer.headersSent) respond(answer, 500, { error: String(error) });
    }
  });
  return {
    ...server,
    handed,
    asked() {
      if (asked === undefined) throw new Error("the facilitator received no request");
      return asked;
    },
    treat: (signed, conduct) => void conducts.set(signed.authorization.nonce, conduct),
    settle,
  };
}

export const respond = (answer: ServerResponse, status: number, body: object): ServerResponse =>
  answer.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));

/** The body of `POST /settle`. */
export interface SettleRequest {
  readonly paymentPayload: PaymentPayload;
  readonly paymentRequirements: PaymentRequirements;
}

function signedOf({ paymentPayload }: SettleRequest): Signed {
  const { authorization, signature } = paymentPayload.payload as {
    readonly authorization: object;
    readonly signature: Hex;
  };
  const { from, to, nonce, value, validAfter, validBefore } = authorization as Record<string, Hex>;
  if (from === undefined || to === undefined || nonce === undefined) throw new Error("not an authorization");
  const amounts = {
    value: BigInt(value ?? 0),
    validAfter: BigInt(validAfter ?? 0),
    validBefore: BigInt(validBefore ?? 0),
  };
  return { authorization: { from, to, nonce, ...amounts }, signature };
}
