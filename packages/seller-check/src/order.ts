import { parseArgs } from "node:util";
import { type Address, type Hex, isAddress, parseUnits } from "viem";
import type { OtherRoute } from "./exam/other-routes.ts";
import { namedRoute } from "./exam/other-routes.ts";
import type { Resource } from "./exam/visit.ts";

const USAGE = `Examines a paid endpoint as a buyer would. It pays up to three times, and tries requests that must fail.

  PRIVATE_KEY=0x… agent-payment-trust-seller-check <URL> --rpc <JSON-RPC URL> [options]

  --rpc <URL>          the chain that payments settle on: a local one, or Base Sepolia; Base costs real money
  --max-price <USDC>   the maximum cost of one payment; default 0.10
  --method <METHOD>    default GET, or POST with --body; add --method POST for a route that is sold by POST without a body
  --body <text>        the body to send, for which the endpoint must sell a result
  --content-type <t>   default application/json
  --other <URL>        another paid URL of the same seller, or its path, by the same method, for the check of
                       binding; default: one that its 402, /.well-known/x402 or /openapi.json shows
  --asset <address>    the only token to pay with; default: the one that the endpoint requires
  --json               the whole report with every request and answer

PRIVATE_KEY pays: an account with three times the price, and one atomic unit. It needs no ether.

Exit codes: 0 every check passed or does not apply; 1 a check failed; 2 usage error, or no exam was possible.`;

/** Thrown for incorrect use: the message gives the correct form. */
export class UsageError extends Error {}

/** The command's arguments. */
export interface Order {
  readonly resource: Resource;
  readonly other: OtherRoute | null;
  readonly rpcUrl: string;
  readonly privateKey: Hex;
  /** In atomic units of six decimals. */
  readonly ceiling: bigint;
  readonly asset: Address | undefined;
  readonly json: boolean;
}

/** Reads arguments and the environment. @throws UsageError */
export function readOrder(args: readonly string[], env: Readonly<Record<string, string | undefined>>): Order {
  const { values, positionals } = parse(args);
  const [url, ...more] = positionals;
  if (url === undefined || more.length > 0)
    throw new UsageError(`Expected one URL; got ${positionals.length}.\n\n${USAGE}`);
  const { body, rpc, other } = values;
  if (rpc === undefined) throw new UsageError(`--rpc is missing.\n\n${USAGE}`);
  const method = (values.method ?? (body === undefined ? "GET" : "POST")).toUpperCase();
  if (!/^[A-Z]+$/.test(method) || method === "HEAD")
    throw new UsageError(`--method ${method} is not a method that sells a result; expected one such as GET or POST.`);
  const contentType = values["content-type"] ?? "application/json";
  const resource = { url: web(url, "The URL"), method, body: body ?? null, contentType };
  return {
    resource,
    other: other === undefined ? null : otherOf(other, resource),
    rpcUrl: web(rpc, "--rpc"),
    privateKey: key(env.PRIVATE_KEY),
    ceiling: price(values["max-price"] ?? "0.10"),
    asset: address(values.asset),
    json: values.json === true,
  };
}

function parse(args: readonly string[]) {
  const text = { type: "string" } as const;
  try {
    return parseArgs({
      args: [...args],
      allowPositionals: true,
      options: {
        rpc: text,
        "max-price": text,
        method: text,
        body: text,
        "content-type": text,
        other: text,
        asset: text,
        json: { type: "boolean" },
      },
    });
  } catch (error) {
    throw new UsageError(`${(error as Error).message}\n\n${USAGE}`);
  }
}

function web(url: string, name: string): string {
  if (URL.canParse(url) && /^https?:$/.test(new URL(url).protocol)) return url;
  throw new UsageError(`${name} ${JSON.stringify(url)} is not an http or https URL.`);
}

function otherOf(text: string, resource: Resource): OtherRoute {
  const route = namedRoute(text, resource);
  if (typeof route !== "string") return route;
  throw new UsageError(`--other ${route}.`);
}

function key(value: string | undefined): Hex {
  if (value !== undefined && /^0x[0-9a-f]{64}$/i.test(value)) return value as Hex;
  throw new UsageError(
    `PRIVATE_KEY is ${value === undefined ? "not set" : "not a private key"}: expected 0x and 64 hexadecimal digits in the environment.`,
  );
}

function price(value: string): bigint {
  if (/^\d{1,9}(\.\d{1,6})?$/.test(value) && Number(value) > 0) return parseUnits(value, 6);
  throw new UsageError(`--max-price ${JSON.stringify(value)} is not an amount; expected one such as 0.10.`);
}

function address(value: string | undefined): Address | undefined {
  if (value === undefined || isAddress(value, { strict: false })) return value;
  throw new UsageError(`--asset ${JSON.stringify(value)} is not an address.`);
}
