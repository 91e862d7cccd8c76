import type { Told, Twist } from "./shop.ts";

type Json = Record<string, unknown>;

const decoded = (header: string): Json => JSON.parse(Buffer.from(header, "base64").toString()) as Json;
const encoded = (value: object): string => Buffer.from(JSON.stringify(value)).toString("base64");

/** Changes what a 402 quotes. */
export const quoting =
  (change: (terms: Json) => Json, when: (asked: Parameters<Twist>[1]) => boolean = () => true): Twist =>
  (told, asked) => {
    const header = told.headers["payment-required"];
    if (header === undefined || !when(asked)) return told;
    return { ...told, headers: { ...told.headers, "payment-required": encoded(change(decoded(header))) } };
  };

/** Changes what a sale says was settled; null says nothing. */
export const settling =
  (change: (said: Json) => Json | null): Twist =>
  (told) => {
    const { "payment-response": header, ...others } = told.headers;
    if (header === undefined) return told;
    const said = change(decoded(header));
    return { ...told, headers: said === null ? others : { ...others, "payment-response": encoded(said) } };
  };

/** Answers one method in a way of its own. */
export const answering =
  (method: string, answer: (told: Told) => Told): Twist =>
  (told, asked) =>
    asked.method === method ? answer(told) : told;

/** The first entry with another price. */
export const priced = (amount: string) => (terms: Json) => ({
  ...terms,
  accepts: (terms.accepts as Json[]).map((entry) => ({ ...entry, amount })),
});

/** Another signed offer or receipt. */
export function signedAs(name: "offers" | "receipt", change: (signed: Json) => unknown) {
  return (given: Json): Json => {
    const extensions = given.extensions as Record<string, { info: Json }>;
    const { info } = extensions["offer-receipt"] ?? { info: {} };
    const old = info[name];
    const changed = Array.isArray(old) ? old.map((one) => change(one as Json)) : change(old as Json);
    return { ...given, extensions: { ...extensions, "offer-receipt": { info: { ...info, [name]: changed } } } };
  };
}

/** The same 402 in version 1, in its body. */
export const alsoInVersion1 =
  (amount: string): Twist =>
  (told, { url }) => {
    const header = told.headers["payment-required"];
    if (header === undefined) return told;
    const accepts = (decoded(header).accepts as Json[]).map(({ amount: _, network, ...entry }) => ({
      ...entry,
      network: network === "eip155:8453" ? "base" : network,
      maxAmountRequired: amount,
      resource: url,
      description: "",
      mimeType: "application/json",
    }));
    return { ...told, body: JSON.stringify({ x402Version: 1, error: "payment required", accepts }) };
  };
