import type { IncomingMessage, ServerResponse } from "node:http";
import { type Capture, capture } from "./capture.ts";
import { hideConnection, receiveBody } from "./connection.ts";
import { preflight } from "./cross-origin.ts";
import { createSeller, type SellerOptions } from "./seller.ts";
import type { Validate } from "./validate.ts";
import { dropConditions } from "./whole-request.ts";

/** The parts of an Express request that are used. */
export interface ExpressRequest extends IncomingMessage {
  readonly protocol: string;
  readonly originalUrl: string;
}

/** The parts of an Express response that are used. */
export interface ExpressResponse extends ServerResponse {
  locals: Record<string, unknown>;
}

type Next = (error?: unknown) => void;

export interface ExpressOptions<R extends ExpressRequest> extends SellerOptions {
  /**
   * Checks the input of a request before anything is held for it, paid or not. A refusal (400 to 499) is returned to
   * the buyer, whose signature is not used. If `express.json()` ran before, `body` is set.
   */
  readonly validate?: Validate<R>;
}

/**
 * Makes the rest of an Express route an escrowed one:
 * `app.post("/haiku", escrowed(options), (request, response) => response.json(…))`. The handlers' response is withheld
 * until the arbiter has it. They find the payment's id in `response.locals.escrowPaymentId`.
 * @throws TypeError for an invalid price or `leastSecondsLeft`, or without a node URL
 */
export function escrowed<R extends ExpressRequest = ExpressRequest>(
  options: ExpressOptions<R>,
): (request: R, response: ExpressResponse, next: Next) => void {
  const serve = createSeller(options);
  return (request, response, next) => {
    const { method = "GET", protocol, originalUrl, headers } = request;
    const headerOf = (name: string) => headers[name]?.toString();
    let captured: Capture | undefined;
    let show = () => {};
    const sale = {
      method,
      url: `${protocol}://${headers.host ?? "localhost"}${originalUrl}`,
      payment: headerOf("payment-signature"),
      xPayment: headerOf("x-payment"),
      async receive() {
        const refusal = await receiveBody(request);
        if (refusal === null) show = hideConnection(request, response, () => captured?.breakOff());
        return refusal;
      },
      validate: () => options.validate?.(request),
      run(id: string) {
        response.locals.escrowPaymentId = id;
        dropConditions(headers);
        captured = capture(response);
        next();
        return captured.taken;
      },
    };
    const finish = async (answer: Response) => {
      const body = new Uint8Array(await answer.arrayBuffer());
      captured?.release();
      show();
      send(response, answer, body);
    };
    const allowed = preflight(method, headerOf);
    const answered = allowed === null ? serve(sale) : Promise.resolve(allowed);
    answered.then(finish).catch((error) => {
      show();
      next(error);
    });
  };
}

function send(response: ExpressResponse, answer: Response, body: Uint8Array): void {
  // The buyer hung up; it gets the response by sending the same header again.
  if (response.destroyed) return;
  response.statusCode = answer.status;
  const hasOwn = response.hasHeader("access-control-allow-origin");
  response.statusMessage = "";
  for (const [name, value] of answer.headers)
    if (name !== "set-cookie" && !(hasOwn && name.startsWith("access-control-"))) response.setHeader(name, value);
  for (const cookie of answer.headers.getSetCookie()) response.appendHeader("set-cookie", cookie);
  response.end(body);
}
