import { readFileSync } from "node:fs";
import type { Address, Hex } from "viem";
import { NETWORKS } from "../../../api/kernel/networks.ts";
import { installCommercePayments } from "../../../scripts/embedded/commerce-payments.ts";
import { connectUsdc, USDC_ENVIRONMENTS, type UsdcChain, type UsdcEnvironment } from "./usdc-chain.ts";

const { CANONICAL_CODE } = process.env;
const CANONICAL = "local Base with the real code of base/commerce-payments";

/** Where tests of the operator run: over our stand-in, over the real code, and on a fork of Base. */
export const COMMERCE_ENVIRONMENTS: readonly UsdcEnvironment[] = [
  ...USDC_ENVIRONMENTS,
  {
    title: CANONICAL,
    hardhatNetwork: "simulatedBase",
    network: NETWORKS["eip155:8453"],
    skipped: CANONICAL_CODE === undefined ? "CANONICAL_CODE is not set: no file with that code" : null,
  },
];

/** A chain with USDC and base/commerce-payments. */
export async function connectCommerce(environment: UsdcEnvironment): Promise<UsdcChain> {
  const chain = await connectUsdc(environment);
  if (environment.hardhatNetwork === "forkedBase") return chain;
  await installCommercePayments(chain.client);
  if (environment.title === CANONICAL && CANONICAL_CODE !== undefined) {
    const codes: Readonly<Record<Address, Hex>> = JSON.parse(readFileSync(CANONICAL_CODE, "utf8"));
    for (const [address, bytecode] of Object.entries(codes) as [Address, Hex][])
      await chain.client.setCode({ address, bytecode });
  }
  return chain;
}
