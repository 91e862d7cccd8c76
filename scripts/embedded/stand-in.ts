import { readFileSync } from "node:fs";
import { concat, createTestClient, custom, encodeAbiParameters, type Hex, publicActions } from "viem";
import type { DevNode } from "./usdc.ts";

/** A client that may set code on a local chain. */
export const devClient = (node: DevNode) =>
  createTestClient({ mode: node.mode, transport: custom(node, { retryCount: 0 }) }).extend(publicActions);

/** The runtime code of one of our stand-ins, which have been compiled, with the addresses that its constructor takes. */
export async function runtimeCode(node: DevNode, name: string, addresses: readonly Hex[] = []): Promise<Hex> {
  const path = `../../artifacts/contracts/dev/${name}.sol/${name}.json`;
  const { bytecode } = JSON.parse(readFileSync(new URL(path, import.meta.url), "utf8")) as { readonly bytecode: Hex };
  const types = addresses.map(() => ({ type: "address" }) as const);
  // Called without a target, creation code returns the runtime code with what is immutable filled in.
  const { data } = await devClient(node).call({ data: concat([bytecode, encodeAbiParameters(types, [...addresses])]) });
  if (data === undefined) throw new Error(`The local chain did not run the creation code of ${name}.`);
  return data;
}
