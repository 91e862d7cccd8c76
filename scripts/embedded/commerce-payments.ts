import { MULTICALL3 } from "../../api/platform/chain/read-at-block.ts";
import { COMMERCE_PAYMENTS } from "../../contracts/commerce-payments.ts";
import { devClient, runtimeCode } from "./stand-in.ts";
import type { DevNode } from "./usdc.ts";

const { escrow, collector } = COMMERCE_PAYMENTS;

/** Installs our compiled stand-in for base/commerce-payments at its canonical addresses on a local chain. */
export async function installCommercePayments(node: DevNode): Promise<void> {
  const client = devClient(node);
  const [escrowCode, collectorCode] = await Promise.all([
    runtimeCode(node, "AuthCaptureEscrowStandIn"),
    runtimeCode(node, "Eip3009CollectorStandIn", [escrow, MULTICALL3]),
  ]);
  await Promise.all([
    client.setCode({ address: escrow, bytecode: escrowCode }),
    client.setCode({ address: collector, bytecode: collectorCode }),
  ]);
}
