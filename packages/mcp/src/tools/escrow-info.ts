import { z } from "zod";
import { freeTool } from "../free-tool.ts";
import { LIMITS } from "../limits.ts";
import { read } from "../service.ts";

const ESCROW = z.looseObject({
  contracts: z.array(z.looseObject({ network: z.string(), address: z.string() })),
  fee_policy: z.looseObject({ fee_bps: z.number() }),
  verdict_policy: z.looseObject({ timeout_seconds: z.number() }),
});

export const escrowInfo = freeTool({
  name: "escrow_info",
  title: "Read about the escrow",
  description: `The non-custodial escrow: its contracts, its fee, what releases or refunds a payment, the refund after ${LIMITS.escrowTimeoutMinutes} minutes, and how merchants and buyers integrate it. Free.`,
  input: z.strictObject({}),
  output: ESCROW,
  reads: ["/escrow"],
  run: async (_input, { service }) => (await read(service, "/escrow")).document as z.infer<typeof ESCROW>,
});
