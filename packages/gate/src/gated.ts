import type {
  AfterVerifyHook,
  BeforeVerifyHook,
  HTTPProcessResult,
  HTTPRequestContext,
  HTTPResponseInstructions,
  PaywallConfig,
  VerifyContext,
} from "@x402/core/server";

/** The parts of `x402HTTPResourceServer` that are used, in the shop's version of it. */
export interface HttpServer {
  readonly server: { onBeforeVerify(hook: BeforeVerifyHook): unknown; onAfterVerify(hook: AfterVerifyHook): unknown };
  requiresPayment(context: HTTPRequestContext): boolean;
  processHTTPRequest(context: HTTPRequestContext, paywallConfig?: PaywallConfig): Promise<HTTPProcessResult>;
}

/** Whether a payment may be accepted, and the response if not. */
export type Judgment =
  | { readonly type: "admitted"; readonly wallet: string }
  | { readonly type: "refused"; readonly response: HTTPResponseInstructions };

/**
 * Makes a stock server accept only the payments that `judge` admits; `judge` sees those that match the shop's terms.
 */
export function gated<S extends HttpServer>(httpServer: S, judge: (context: VerifyContext) => Promise<Judgment>): S {
  /** Keyed by the adapter, which represents the request: no other object reaches the hooks. */
  const judgments = new WeakMap<object, Judgment | "pending">();
  const conclude = (request: object, judgment: Judgment) => {
    judgments.set(request, judgment);
    return judgment.type === "refused" ? ({ abort: true, reason: "wallet_not_admitted" } as const) : undefined;
  };
  httpServer.server.onBeforeVerify(async (context) => {
    const request = requestOf(context);
    // Routes of another HTTP server may share this x402 server.
    if (request === undefined || !judgments.has(request)) return;
    return conclude(request, await judge(context));
  });
  httpServer.server.onAfterVerify(async (context) => {
    const request = requestOf(context);
    const judgment = request && judgments.get(request);
    const { payer } = context.result;
    if (!request || !payer || typeof judgment !== "object" || judgment.type !== "admitted") return;
    if (payer.toLowerCase() === judgment.wallet.toLowerCase()) return;
    return conclude(request, refused(403, "The facilitator names a different wallet from the payment."));
  });

  const requiresPayment = httpServer.requiresPayment.bind(httpServer);
  const processHTTPRequest = httpServer.processHTTPRequest.bind(httpServer);
  /** Frameworks answer HEAD with the handler of GET, so a route keyed by GET is for both. */
  const routed = (context: HTTPRequestContext): HTTPRequestContext =>
    context.method === "HEAD" && !requiresPayment(context) ? { ...context, method: "GET" } : context;
  return Object.assign(httpServer, {
    requiresPayment: (context: HTTPRequestContext) => requiresPayment(routed(context)),
    async processHTTPRequest(asked: HTTPRequestContext, paywallConfig?: PaywallConfig): Promise<HTTPProcessResult> {
      const context = routed(asked);
      // `withX402FromHTTPServer` of Next would run its handler unpaid.
      if (!requiresPayment(context))
        return failed(`No paid route matches ${context.method} ${context.path}. In a route of Next, give { accepts }.`);
      judgments.set(context.adapter, "pending");
      const result = await processHTTPRequest(context, paywallConfig);
      const judgment = judgments.get(context.adapter);
      if (typeof judgment === "object" && judgment.type === "refused")
        return { type: "payment-error", response: judgment.response };
      // The x402 server ignores a hook that throws, and skips later hooks after one that verified the payment.
      if (result.type === "payment-verified" && judgment === "pending")
        return failed("The gate did not judge this payment.");
      return result;
    },
  });
}

/** Returns a refusal before anything is charged. */
export const refused = (status: 403 | 503, error: string, more: object = {}): Judgment => ({
  type: "refused",
  response: {
    status,
    headers: {
      "Content-Type": "application/json",
      "Cache-Control": "no-store",
      ...(status === 503 ? { "Retry-After": "5" } : {}),
    },
    body: { error: `${error} Nothing was charged.`, ...more },
  },
});

/** Returns a response for a fault of the shop. */
const failed = (error: string): HTTPProcessResult => ({
  type: "payment-error",
  response: { status: 500, headers: { "Content-Type": "application/json" }, body: { error } },
});

function requestOf({ transportContext }: VerifyContext): object | undefined {
  const { request } = (transportContext ?? {}) as { readonly request?: { readonly adapter?: object } };
  return request?.adapter;
}
