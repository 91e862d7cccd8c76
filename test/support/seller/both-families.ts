import { createServer, type RequestListener, type Server } from "node:http";
import type { AddressInfo, LookupFunction } from "node:net";
import { encodePaymentRequiredHeader } from "@x402/core/http";
import type { NetworkFacts } from "../../../api/platform/networks.ts";
import { forFile } from "../for-file.ts";

/** A name with an IPv4 and an IPv6 address, both of this machine. */
const NAME = "both.test";
export const lookupBoth: LookupFunction = (_, { all, family }, found) => {
  const addresses = [
    { address: "127.0.0.1", family: 4 },
    { address: "::1", family: 6 },
  ].filter((one) => !family || one.family === family);
  if (all) found(null, addresses);
  else found(null, addresses[0]?.address ?? "", addresses[0]?.family);
};

/**
 * A server that quotes `amounts` in atomic USDC, by the IP version of the request. It sells nothing. @returns its URL
 * under a name with both addresses, or null if this machine has no IPv6
 */
export async function openDoor(
  network: NetworkFacts,
  amounts: Readonly<Record<4 | 6, string>>,
): Promise<string | null> {
  const door = (family: 4 | 6) => listener(network, amounts[family]);
  for (;;) {
    const four = await listening(door(4), { host: "127.0.0.1", port: 0 });
    const { port } = four.address() as AddressInfo;
    const six = await listening(door(6), { host: "::1", port }).catch((error: NodeJS.ErrnoException) => error.code);
    await forFile(four);
    if (six === "EADDRINUSE") continue;
    if (typeof six !== "object") return null;
    await forFile(six);
    return `http://${NAME}:${port}/haiku`;
  }
}

function listening(answer: RequestListener, at: { readonly host: string; readonly port: number }): Promise<Server> {
  const server = createServer(answer);
  return new Promise((resolve, reject) => server.on("error", reject).listen(at, () => resolve(server)));
}

const listener =
  ({ id, usdc }: NetworkFacts, amount: string): RequestListener =>
  ({ method, headers }, response) => {
    if (method !== "GET") return void response.writeHead(405).end();
    const extra = { name: usdc.name, version: usdc.version };
    const payTo = "0x00000000000000000000000000000000000c0ffe";
    const entry = { scheme: "exact", network: id, asset: usdc.address, amount, payTo, maxTimeoutSeconds: 60, extra };
    const resource = { url: `http://${headers.host}/haiku` };
    const terms = { x402Version: 2, resource, accepts: [entry] };
    const header = encodePaymentRequiredHeader(terms as Parameters<typeof encodePaymentRequiredHeader>[0]);
    response.writeHead(402, { "payment-required": header }).end("{}");
  };
