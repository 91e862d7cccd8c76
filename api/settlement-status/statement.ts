import { createHash } from "node:crypto";
import { authorizationDigest } from "../platform/chain/authorization.ts";
import type { Block, HashedBlock } from "../platform/chain/nodes.ts";
import type { PaymentKey } from "../platform/http/route.ts";
import { explorerTransactionUrl, NETWORKS } from "../platform/networks.ts";
import type { Missing, Status, ValidityWindow } from "./decide.ts";
import type { Question } from "./question.ts";
import type { NonceEnd } from "./reading.ts";
import { authorizationOf, questionAbout, type StatementRequest } from "./statement-request.ts";

/** What each status means for who holds or signed the authorization. */
const MEANS = {
  settled: "The authorization has paid.",
  settledFinal: "The authorization has paid, for good.",
  replaced:
    "The nonce has paid for another authorization of the same payer: this one was never used, and cannot be any more.",
  canceled: "The payer has canceled the authorization: it was never used, and cannot be any more.",
  expired:
    "The authorization was not used in time, which a final block proves: it can never settle. That rests on valid_before.",
  used: "The nonce is over. Its transaction was not found, so whether it has paid or was canceled is not known.",
} as const;

const UNLESS_UNDONE = "As long as the block is not final, a reorganization may undo that.";

const PENDING: Readonly<Record<ValidityWindow, string>> = {
  not_yet: "The authorization is not used. It cannot settle before valid_after, and can from then on.",
  open: "The authorization is not used, and can still settle. Do not sign another one for the same purchase.",
  closed:
    "The authorization is not used and its window has closed, but no final block shows that yet. Do not sign another one for the same purchase before the answer is final.",
  unknown:
    "The nonce is not used. Its authorization can settle until its validBefore; ask with valid_before to learn whether that has passed.",
};

const MISSING: Readonly<Record<Missing, string>> = {
  unfinished: "Ask again in a moment: the search goes on.",
  nowhere: "Name the transaction if you know it, or valid_before: the logs of the day before that are searched.",
  later: "So many have been searched for in this hour that this one must wait; name the transaction if you know it.",
};

/** Members in snake_case, as in every answer of the service. Amounts are atomic units as text. */
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
