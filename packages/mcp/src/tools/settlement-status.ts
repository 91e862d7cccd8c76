import { z } from "zod";
import { NETWORKS, type Network } from "../../../verifier/src/networks.ts";
import { wallet } from "../fields.ts";
import { freeTool } from "../free-tool.ts";
import { readSettlement, SETTLEMENT } from "../settlement.ts";

export const settlementStatus = freeTool({
  name: "settlement_status",
  title: "Look up a payment's status",
  description:
    "Whether a USDC authorization (EIP-3009), to any payee, has settled, can still settle, or never can. Call it before you sign a second time for the same purchase: only expired, canceled, or replaced with final true mean that the first can never be charged. Free.",
  input: z.strictObject({
    network: z
      .enum([...Object.values(NETWORKS).map(({ key }) => key), ...(Object.keys(NETWORKS) as Network[])])
      .default("eip155:8453"),
    from: wallet,
    nonce: z
      .string()
      .regex(/^0x[0-9a-fA-F]{64}$/, "expected a nonce: 0x and 64 hex digits")
      .describe("The authorization's nonce."),
    valid_before: z
      .string()
      .regex(/^\d{1,78}$/, "expected Unix seconds")
      .optional()
      .describe("The authorization's validBefore. Without it, no status is ever expired."),
    transaction: z
      .string()
      .regex(/^0x[0-9a-fA-F]{64}$/, "expected a transaction hash: 0x and 64 hex digits")
      .optional()
      .describe("A transaction that may have settled it, for an old authorization."),
  }),
  output: SETTLEMENT,
  reads: ["/settlement"],
  run: (input, { service }) => readSettlement(service, input),
});
