import { z } from "zod";
import { address, bytes32, transactionHash, url } from "../../platform/http/schema.ts";
import type { Address, Hex } from "../../platform/wallet.ts";
import { credentialUrl } from "../links.ts";

/** The ERC-8004 registry of a publication: for feedback, or for answers to validation requests. */
export type Registry = "reputation" | "validation";

/**
 * `ordered`: nothing has been sent. `sending`, `withdrawing`: gas has been charged, and a transaction may exist.
 * `mined`, `withdrawal_mined`: a reorganization may still undo it. The others are terminal: `published` and `withdrawn`
 * are final on the chain, `refused` was never sent, and `failed` was mined without effect too often.
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

/** The reasons nothing is published, or a publication is withdrawn. */
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
  /** The validation request that it answers, or null for feedback. */
  readonly request: Hex | null;
  /** The block of the order's payment. Nothing about the certificate was published before it. */
  readonly fromBlock: number;
  readonly state: PublicationState;
  /** The number of transactions for this step that were mined without effect. */
  readonly attempt: number;
  readonly reason: PublicationReason | null;
  /** The account that made the statement, or null before there is one. */
  readonly publisher: Address | null;
  /** The registry's index of it; null for answers, and before it is mined. */
  readonly feedbackIndex: bigint | null;
  readonly transaction: Hex | null;
  readonly withdrawal: Hex | null;
  /** The block of the last transaction, or null while none is mined. */
  readonly place: Omit<MinedIn, "transaction"> | null;
}

export interface Stated {
  readonly product: string;
  readonly isPass: boolean;
  readonly url: string;
  /** The credential, byte for byte. */
  readonly document: string;
}

/**
 * `failed`: mined in a final block, without effect. `unsent`: there is no transaction, and there cannot be one anymore.
 * `pending`: a transaction may still be anywhere.
 */
export type Carried =
  | { readonly state: "mined"; readonly place: MinedIn; readonly publisher: Address; readonly index: bigint | null }
  | { readonly state: "pending" | "failed" | "unsent" };

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

export const PUBLICATION = z
  .object({
    registry: z.enum(["reputation", "validation"]),
    contract: address,
    agent_id: z.string(),
    validation_request: bytes32.nullable(),
    status: z.enum(["waiting", "published", "withdrawing", "withdrawn", "refused", "failed"]),
    final: z.boolean().meta({ description: "Whether it can no longer be changed by the service or a reorganization." }),
    reason: z.enum(PUBLICATION_REASONS).nullable().meta({
      description: "The reason that nothing was published or that it is withdrawn.",
    }),
    publisher: address.nullable().meta({ description: "The feedback's client, or the validator." }),
    feedback_index: z.string().nullable(),
    transaction: transactionHash.nullable(),
    withdrawal_transaction: transactionHash.nullable(),
    credential_url: url.meta({
      description: "The URL in the registry; the hash in the registry is the Keccak-256 of its content.",
    }),
  })
  .meta({
    id: "Publication",
    description: "The publications of the certificate in ERC-8004 registries.",
  }) satisfies z.ZodType<ReturnType<typeof publicationEntry>>;
