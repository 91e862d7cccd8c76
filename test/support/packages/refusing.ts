import { decodePaymentSignatureHeader } from "@x402/core/http";
import type { ServiceAnswer } from "../../../packages/mcp/src/service.ts";
import type { Signed } from "../payments/signing.ts";
import { between } from "./mcp.ts";

const refusal = (url: string): ServiceAnswer => ({
  status: 402,
  headers: new Headers({
    "payment-required": Buffer.from(
      JSON.stringify({ x402Version: 2, error: "never submitted", resource: { url }, accepts: [] }),
    ).toString("base64"),
  }),
  text: "{}",
});

export type Said = Readonly<Record<string, unknown>>;

/** A seller that refuses every payment, keeps it, and says what it likes of the chain. */
export function refusingAt(url: string, say: (asked: URLSearchParams) => Said | number | null = () => null) {
  const kept: Signed[] = [];
  const seller = between(
    url,
    (answer, { path, headers }) => {
      const payment = headers?.["PAYMENT-SIGNATURE"];
      if (payment !== undefined) {
        kept.push(signedIn(payment));
        return refusal(url);
      }
      const said = path.startsWith("/settlement?") ? say(new URL(path, url).searchParams) : null;
      if (said === null) return answer;
      return typeof said === "number"
        ? { ...answer, status: said, text: "{}" }
        : { ...answer, status: 200, text: JSON.stringify({ final: true, means: "so it is.", ...said }) };
    },
    ({ headers: _, ...request }) => request,
  );
  return { seller, kept };
}

/** The authorization in a payment header, with its signature. */
export function signedIn(header: string): Signed {
  const { authorization, signature } = decodePaymentSignatureHeader(header).payload as unknown as {
    readonly authorization: Record<"value" | "validAfter" | "validBefore", string> & Signed["authorization"];
    readonly signature: Signed["signature"];
  };
  const { value, validAfter, validBefore } = authorization;
  const amounts = { value: BigInt(value), validAfter: BigInt(validAfter), validBefore: BigInt(validBefore) };
  return { authorization: { ...authorization, ...amounts }, signature };
}

export const nonces = (payments: readonly Signed[]) => new Set(payments.map(({ authorization: { nonce } }) => nonce));

/** The service's word that the payment which it is asked about has expired. */
export const expired = (asked: URLSearchParams, change: Said = {}): Said => {
  const [from, nonce, valid_before] = ["from", "nonce", "valid_before"].map((name) => asked.get(name));
  const time = new Date(Number(valid_before) * 1_000).toISOString();
  return { status: "expired", from, nonce, valid_before, final_block: { time }, ...change };
};
