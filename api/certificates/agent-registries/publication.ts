import { z } from "zod";
import { address, bytes32, transactionHash, url } from "../../platform/http/schema.ts";
import type { Address, Hex } from "../../platform/wallet.ts";
import { credentialUrl } from "../links.ts";

/** Which registry of ERC-8004 a publication is in: feedback, or the answer to a validation request. */
export type Registry = "reputation" | "validation";

/**
 * `ordered`: nothing is sent. `sending`, `withdrawing`: its gas is charged, and a transaction may exist. `mined`,
 * `withdrawal_mined`: a reorganization may still undo it. The others are ends: `published` and `withdrawn` are final on
 * the chain, `refused` was never sent, `failed` was mined in vain too often.
 */
export type PublicationState =
  | "ordered"
  | "sending"
  | "mined"
  | "published"
  | "withdrawing"
  | "withdrawal_mined"
  | "withdrawn"
  | "refused"
  | "failed";

/** Why nothing is published, or why it was withdrawn. */
export const PUBLICATION_REASONS = [
  "no_certificate",
  "not_about_wallet",
  "reversed",
  "expired",
  "other_wallet",
  "other_validator",
  "registry",
] as const;
export type PublicationReason = (typeof PUBLICATION_REASONS)[number];

/** Where a transaction was mined. */
export interface MinedIn {
  readonly transaction: Hex;
  readonly block: number;
  readonly blockHash: Hex;
}

/** One statement about one certificate in one registry. */
export interface Publication {
  readonly certificate: string;
  readonly registry: Registry;
  readonly contract: Address;
  readonly agent: bigint;
  /** The validation request that it answers; null for feedback. */
  readonly request: Hex | null;
  /** The block of the order's payment: nothing about it was published before. */
  readonly fromBlock: number;
  readonly state: PublicationState;
  /** How many transactions for this step were mined in vain. */
  readonly attempt: number;
  readonly reason: PublicationReason | null;
  /** Whose statement it is; null before there was one. */
  readonly publisher: Address | null;
  /** What the registry counts it as; null for answers, and before it is mined. */
  readonly feedbackIndex: bigint | null;
  /** Of the publication. */
  readonly transaction: Hex | null;
  /** Of its withdrawal. */
  readonly withdrawal: Hex | null;
  /** The block of the last transaction; null while none is mined. */
  readonly place: Omit<MinedIn, "transaction"> | null;
}

const SHOWN = {
  ordered: "waiting",
  sending: "waiting",
  mined: "published",
  published: "published",
  withdrawing: "withdrawing",
  withdrawal_mined: "withdrawn",
  withdrawn: "withdrawn",
  refused: "refused",
  failed: "failed",
} as const satisfies Record<PublicationState, string>;

const ENDS: readonly PublicationState[] = ["published", "withdrawn", "refused", "failed"];

/** How a certificate's record shows a publication. */
export const publicationEntry = (publication: Publication, baseUrl: string) => ({
  registry: publication.registry,
  contract: publication.contract,
  agent_id: publication.agent.toString(),
  validation_request: publication.request,
  status: SHOWN[publication.state],
  final: ENDS.includes(publication.state),
  reason: publication.reason,
  publisher: publication.publisher,
  feedback_index: publication.feedbackIndex?.toString() ?? null,
  transaction: publication.transaction,
  withdrawal_transaction: publication.withdrawal,
  credential_url: credentialUrl(baseUrl, { id: publication.certificate }),
});

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
