import { z } from "zod";
import { read, type Service } from "./service.ts";

/** The service's statement about an authorization. */
export const SETTLEMENT = z.looseObject({
  status: z.enum(["settled", "pending", "expired", "canceled", "replaced", "used"]),
  final: z.boolean().describe("Whether this answer can never change."),
  window: z.enum(["not_yet", "open", "closed", "unknown"]).exactOptional(),
  means: z.string().describe("The meaning for the signer."),
  from: z.string().exactOptional(),
  nonce: z.string().exactOptional(),
  transaction: z.string().exactOptional(),
  valid_before: z.string().nullable().exactOptional(),
  final_block: z.looseObject({ time: z.string() }).exactOptional().describe("The final block that shows it."),
});

export type Settlement = z.infer<typeof SETTLEMENT>;

/** An authorization (EIP-3009) by its name, and the details that are known. */
export interface Asked {
  readonly network: string;
  readonly from: string;
  readonly nonce: string;
  readonly valid_before?: string | undefined;
  readonly transaction?: string | undefined;
}

/** Reads the status of an authorization. @throws ServiceError if the service cannot determine it */
export async function readSettlement(service: Service, asked: Asked): Promise<Settlement> {
  const given = Object.entries(asked).filter((entry): entry is [string, string] => entry[1] !== undefined);
  const { document } = await read(service, `/settlement?${new URLSearchParams(given)}`);
  return SETTLEMENT.parse(document);
}
