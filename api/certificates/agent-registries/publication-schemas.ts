import { z } from "zod";
import { address, bytes32, transactionHash, url } from "../../platform/http/schema.ts";
import { PUBLICATION_REASONS, type publicationEntry } from "./publication.ts";

/** What a certificate's record says of a publication. */
export const PUBLICATION = z
  .object({
    registry: z.enum(["reputation", "validation"]),
    contract: address,
    agent_id: z.string(),
    validation_request: bytes32.nullable(),
    status: z.enum(["waiting", "published", "withdrawing", "withdrawn", "refused", "failed"]),
    final: z.boolean().meta({ description: "Whether neither the service nor a reorganization will change it." }),
    reason: z.enum(PUBLICATION_REASONS).nullable().meta({
      description: "Why nothing was published, or why it is withdrawn.",
    }),
    publisher: address.nullable().meta({ description: "The feedback's client, or the validator." }),
    feedback_index: z.string().nullable(),
    transaction: transactionHash.nullable(),
    withdrawal_transaction: transactionHash.nullable(),
    credential_url: url.meta({ description: "What the registry names; its Keccak-256 is the registry's hash." }),
  })
  .meta({
    id: "Publication",
    description: "What the registries of ERC-8004 are told about the certificate.",
  }) satisfies z.ZodType<ReturnType<typeof publicationEntry>>;
