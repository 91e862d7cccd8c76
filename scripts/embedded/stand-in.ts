import { readFileSync } from "node:fs";
import { concat, createTestClient, custom, encodeAbiParameters, type Hex, publicActions } from "viem";
import type { DevNode } from "./usdc.ts";

/** Creates a client that can set code on a local chain. */
export const devClient = (node: DevNode) =>
  createTestClient({ mode: node.mode, transport: custom(node, { retryCount: 0 }) }).extend(publicActions);

/** Returns the runtime code of a compiled stand-in, with the addresses that its constructor takes. */
export async function runtimeCode(node: DevNode, name: string, addresses: readonly Hex[] = []): Promise<Hex> {
  const path = `../../artifacts/contracts/dev/${name}.sol/${name}.json`;
  const { bytecode } = JSON.parse(readFileSync(new URL(path, import.meta.url), "utf8")) as { readonly bytecode: Hex };
  const types = addresses.map(() => ({ type: "address" }) as const);
  // A call of creation code without a target returns the runtime code with the immutables filled in.
  const { data } = await devClient(node).call({ data: concat([bytecode, encodeAbiParameters(types, [...addresses])]) });
  if (data === undefined) throw new Error(`The local chain did not run the creation code of ${name}.`);
  return data;
}
