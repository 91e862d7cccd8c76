import { readFileSync } from "node:fs";
import { concat, createTestClient, custom, encodeAbiParameters, type Hex, publicActions } from "viem";
import { MULTICALL3 } from "../../api/adapters/chain/multicall.ts";
import { COMMERCE_PAYMENTS } from "../../contracts/commerce-payments.ts";
import type { DevNode } from "./usdc.ts";

const { escrow, collector } = COMMERCE_PAYMENTS;

/** Puts our stand-in for base/commerce-payments, which has been compiled, at its canonical addresses on a local chain. */
export async function installCommercePayments(node: DevNode): Promise<void> {
  const client = createTestClient({ mode: node.mode, transport: custom(node, { retryCount: 0 }) }).extend(
    publicActions,
  );
  const types = [{ type: "address" }, { type: "address" }] as const;
  // Called without a target, creation code returns the runtime code with what is immutable filled in.
  const creation = concat([
    artifact("Eip3009CollectorStandIn").bytecode,
    encodeAbiParameters(types, [escrow, MULTICALL3]),
  ]);
  const { data } = await client.call({ data: creation });
  if (data === undefined) throw new Error("The local chain did not run the collector's creation code.");
  await Promise.all([
    client.setCode({ address: escrow, bytecode: artifact("AuthCaptureEscrowStandIn").deployedBytecode }),
    client.setCode({ address: collector, bytecode: data }),
  ]);
}

function artifact(name: string): { readonly bytecode: Hex; readonly deployedBytecode: Hex } {
  const path = `../../artifacts/contracts/dev/${name}.sol/${name}.json`;
  return JSON.parse(readFileSync(new URL(path, import.meta.url), "utf8"));
}
