import { createHash } from "node:crypto";
import { NETWORKS } from "../platform/networks.ts";
import type { PaymentKey } from "../platform/http/route.ts";
import { authorizationDigest } from "../payments/schemes/exact/authorization.ts";
import type { Status } from "./decide.ts";
import { settlementDocument } from "./settlement-document.ts";
import { authorizationOf, questionAbout, type StatementRequest } from "./statement-request.ts";

/** A statement before it is signed. */
export interface Stated {
  readonly id: string;
  readonly request: StatementRequest;
  readonly status: Status;
  readonly issuer: string;
  readonly issuedAt: Date;
}

/**
 * What became of one authorization, as of a block. Without the payer's signature, nobody knows that the payer signed this
 * `validBefore` and no later one: `conditional_on` says so.
 */
export function statementDocument({ id, request, status, issuer, issuedAt }: Stated) {
  const { network, authorization, signedAs } = request;
  const signed =
    signedAs === null
      ? { verified: false }
      : {
          verified: true,
          primary_type: signedAs,
          digest: authorizationDigest(authorizationOf(request), NETWORKS[network], signedAs),
        };
  return {
    "@context": ["https://www.w3.org/ns/credentials/undefined-terms/v2"],
    type: "SettlementStatement" as const,
    id,
    issuer,
    authorization,
    signature: signed,
    conditional_on: signedAs === null ? ("authorization.validBefore" as const) : null,
    settlement: settlementDocument(questionAbout(request), status),
    issued_at: issuedAt.toISOString(),
  };
}

export type StatementDocument = ReturnType<typeof statementDocument>;

/** 32 hex digits derived from the payment that bought it: a sale makes one statement, however often it runs. */
export const statementId = ({ network, asset, payer, nonce }: PaymentKey): string =>
  createHash("sha256").update(`settlement|${network}|${asset}|${payer}|${nonce}`).digest("hex").slice(0, 32);
