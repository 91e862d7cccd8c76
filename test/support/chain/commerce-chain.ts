import { readFileSync } from "node:fs";
import { type Address, getAddress, type Hex, isAddressEqual } from "viem";
import { NETWORKS } from "../../../api/platform/networks.ts";
import { COMMERCE_PAYMENTS } from "../../../contracts/commerce-payments.ts";
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
    for (const { address, bytecode } of readCode(CANONICAL_CODE)) await chain.client.setCode({ address, bytecode });
  }
  return chain;
}

/**
 * Reads a file from addresses to runtime code.
 * @throws Error if it lacks one of the two contracts that the operator calls: the stand-in would be tested instead.
 */
function readCode(path: string): readonly { readonly address: Address; readonly bytecode: Hex }[] {
  const codes = Object.entries(JSON.parse(readFileSync(path, "utf8")) as Readonly<Record<Address, Hex>>);
  const found = codes.map(([address, bytecode]) => ({ address: getAddress(address), bytecode }));
  for (const wanted of [COMMERCE_PAYMENTS.escrow, COMMERCE_PAYMENTS.collector])
    if ((found.find(({ address }) => isAddressEqual(address, wanted))?.bytecode ?? "0x") === "0x")
      throw new Error(`${path} has no code of ${wanted}, which CANONICAL_CODE is to give.`);
  return found;
}
