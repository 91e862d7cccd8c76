import { createHash } from "node:crypto";
import { authorizationDigest } from "../platform/chain/authorization.ts";
import type { Block, HashedBlock } from "../platform/chain/nodes.ts";
import type { PaymentKey } from "../platform/http/route.ts";
import { explorerTransactionUrl, NETWORKS } from "../platform/networks.ts";
import type { Missing, Status, ValidityWindow } from "./decide.ts";
import type { Question } from "./question.ts";
import type { NonceEnd } from "./reading.ts";
import { authorizationOf, questionAbout, type StatementRequest } from "./statement-request.ts";

/** The meaning of each status for the holder and the signer of the authorization. */
const MEANS = {
  settled: "The authorization has settled.",
  settledFinal: "The authorization has settled, permanently.",
  replaced: "The nonce was used for another authorization of the same payer. This one was never used and never can be.",
  canceled: "The payer canceled the authorization. It was never used and never can be.",
  expired:
    "A final block proves that the authorization was not used in time, so it can never settle. This depends on valid_before.",
  used: "The nonce was used. Its transaction was not found, so it is unknown whether the authorization was paid or canceled.",
} as const;

const UNLESS_UNDONE = "Until the block is final, a reorganization may undo this.";

const PENDING: Readonly<Record<ValidityWindow, string>> = {
  not_yet: "The authorization is unused. It can settle only after valid_after.",
  open: "The authorization is unused and can still settle. Do not sign another one for the same purchase.",
  closed:
    "The authorization is unused and its window has closed, but no final block shows that yet. Do not sign another one for the same purchase until the status is final.",
  unknown:
    "The nonce is unused. Its authorization can settle until its validBefore. Send valid_before to learn whether that has passed.",
};

const MISSING: Readonly<Record<Missing, string>> = {
  unfinished: "Retry in a moment; the search continues.",
  nowhere: "Send the transaction if you know it, or valid_before: the logs of the day before it are searched.",
  later: "The search budget of this hour is spent, so this search must wait. Send the transaction if you know it.",
};

/** Returns the response, with amounts in atomic units as text. */
export function settlementDocument(question: Question, status: Status) {
  const { network, from, nonce, validBefore } = question;
  const about = { network, asset: NETWORKS[network].usdc.address, from, nonce };
  const shown = { as_of: blockWire(status.asOf), means: means(status) };
  const before = { valid_before: validBefore?.toString() ?? null };
  switch (status.status) {
    case "settled":
    case "replaced": {
      const { to, value } = status.transfer;
      const paid = { ...endWire(question, status.end), to, value: value.toString() };
      return { ...about, status: status.status, final: status.final, ...shown, ...paid };
    }
    case "canceled":
      return { ...about, status: status.status, final: status.final, ...shown, ...endWire(question, status.end) };
    case "used":
      return { ...about, status: status.status, final: status.final, ...shown, search: status.search };
    case "pending":
      return { ...about, status: status.status, final: status.final, ...shown, window: status.window, ...before };
    case "expired":
      return {
        ...about,
        status: status.status,
        final: status.final,
        ...shown,
        ...before,
        final_block: hashedWire(status.finalBlock),
      };
    default:
      return status satisfies never;
  }
}

export type SettlementDocument = ReturnType<typeof settlementDocument>;

function means(status: Status): string {
  switch (status.status) {
    case "settled":
      return status.final ? MEANS.settledFinal : `${MEANS.settled} ${UNLESS_UNDONE}`;
    case "replaced":
    case "canceled":
      return status.final ? MEANS[status.status] : `${MEANS[status.status]} ${UNLESS_UNDONE}`;
    case "used":
      return `${MEANS.used} ${MISSING[status.search]}`;
    case "pending":
      return PENDING[status.window];
    case "expired":
      return MEANS.expired;
    default:
      return status satisfies never;
  }
}

const isoTime = (seconds: bigint): string => new Date(Number(seconds) * 1000).toISOString();

const blockWire = ({ number, time }: Block) => ({ block: number, time: isoTime(time) });

const hashedWire = ({ hash, ...block }: HashedBlock) => ({ ...blockWire(block), hash });

const endWire = ({ network }: Question, { transaction, block }: NonceEnd) => ({
  transaction,
  block: block.number,
  block_hash: block.hash,
  block_time: isoTime(block.time),
  explorer_url: explorerTransactionUrl(network, transaction),
});

export interface Stated {
  readonly id: string;
  readonly request: StatementRequest;
  readonly status: Status;
  readonly issuer: string;
  readonly issuedAt: Date;
}

/**
 * Returns the unsigned statement of one authorization's status as of a block. Without the payer's signature, the payer may
 * have signed a later `validBefore`, so `conditional_on` is set.
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

/** Derives 32 hex digits from the payment, so that a sale makes one statement even if it runs again. */
export const statementId = ({ network, asset, payer, nonce }: PaymentKey): string =>
  createHash("sha256").update(`settlement|${network}|${asset}|${payer}|${nonce}`).digest("hex").slice(0, 32);
