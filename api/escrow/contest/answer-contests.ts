import { type ClaimSettings, type EvidenceParts, gatherEvidence } from "../../arbiter/index.ts";
import type { Signer } from "../../platform/signing/document.ts";
import type { Hex } from "../../platform/wallet.ts";
import { Busy } from "../../platform/web/guarded-fetch/request.ts";
import type { EscrowChain } from "../chain.ts";
import { signedDigest } from "../delivery.ts";
import { gasCharged } from "../payment.ts";
import { recordHash } from "../record.ts";
import { type ContestClaim, contestDigest, hashedClaim } from "./claim.ts";
import { contestPath, contestRecord } from "./contest-record.ts";
import { type Judged, judgedBy, judgePayloadHash, NO_GROUND, WINDOW_CLOSED } from "./grounds.ts";
import type { Contest, ContestStore, ContestView, OpenedWindow } from "./store.ts";

/** Contests taken in one pass. */
export const BATCH = 32;
const LOOK_AGAIN_SECONDS = 2;

export interface ContestParts {
  readonly contests: ContestStore;
  readonly chain: Pick<EscrowChain, "isSigned" | "isSignedAt" | "time">;
  readonly evidence: EvidenceParts;
  readonly claims: ClaimSettings;
  readonly signer: Signer;
  readonly baseUrl: string;
  readonly now: () => Date;
  readonly log: { warn(facts: object, message: string): void };
}

/** A contest as it was posted. */
export interface NewContest {
  readonly payment: Hex;
  readonly claim: ContestClaim;
  readonly claimSha256: Hex;
  readonly signature: Hex;
}

/** The reasons a contest is rejected. The release then continues as if there had been none. */
export type ContestRefusal = "no_window" | "not_the_payer" | "other_contest" | "over";

export interface Contests {
  /**
   * Accepts a payer's one contest and answers it, immediately if possible. The same contest gets the same answer again.
   */
  contest(
    posted: NewContest,
  ): Promise<(ContestView & { readonly isReplay: boolean }) | { readonly refused: ContestRefusal }>;
  /** Returns a payment's window and its contest, or null if it had no window. */
  view(payment: Hex): Promise<ContestView | null>;
  /** Answers contests left unanswered because a process died or was too busy. */
  answerContests(): Promise<number>;
}

export function createContests(parts: ContestParts): Contests {
  const { contests, chain, log } = parts;
  const view = async (payment: Hex): Promise<ContestView | null> => {
    const [window, contest] = await Promise.all([contests.window(payment), contests.contest(payment)]);
    return window && { window, contest };
  };
  /** If this fails, a later pass tries again, until anyone may refund the hold. */
  const attempt = async (payment: Hex): Promise<void> => {
    try {
      await answer(parts, payment);
    } catch (error) {
      if (!(error instanceof Busy)) log.warn({ err: error, payment }, "a contest could not be answered yet");
      await contests.lookAgain(payment, LOOK_AGAIN_SECONDS).catch(() => undefined);
    }
  };
  /** Until the work is done, other processes see that this one is alive and leave its contests alone. */
  const present = async <T>(work: (owner: number) => Promise<T>): Promise<T> => {
    const { owner, leave } = await contests.enter();
    return work(owner).finally(leave);
  };
  const opens = (contest: Contest) =>
    present(async (owner) => {
      const opened = await contests.open(contest, owner);
      if (opened !== "opened") return opened;
      // If other contests wait for a fetch, this one waits with them: the next fetch is for the most urgent, not for
      // the newest.
      const isNext = contest.claim.category !== "http-delivery" || !(await contests.areDue());
      await (isNext ? attempt(contest.payment) : contests.lookAgain(contest.payment, 0));
      return opened;
    });
  return {
    view,

    async contest(posted) {
      const { payment, claimSha256, signature } = posted;
      const window = await contests.window(payment);
      if (window === null) return { refused: "no_window" };
      const { hold } = window;
      const digest = contestDigest(hold, claimSha256);
      const isKnown = (await contests.contest(payment)) !== null;
      // It counts as made when it arrives, because a wallet may take a while to check a signature.
      const madeAt = isKnown ? null : await chain.time();
      if (!(await chain.isSigned(hold.info.payer, digest, signature))) return { refused: "not_the_payer" };
      const opened = madeAt === null ? "taken" : await opens({ ...posted, madeAt });
      if (opened === "over") return { refused: "over" };
      const contest = await contests.contest(payment);
      if (contest?.claimSha256 !== claimSha256) return { refused: "other_contest" };
      return { window, contest, isReplay: opened === "taken" };
    },

    async answerContests() {
      if (!(await contests.areDue())) return 0;
      return present(async (owner) => {
        const taken = await contests.take(BATCH, owner, await chain.time());
        await Promise.all(taken.map(attempt));
        return taken.length;
      });
    },
  };
}

/** Judges a contest and stores its answer, for which the release waits until anyone may refund the hold. */
async function answer(parts: ContestParts, payment: Hex): Promise<void> {
  const { contests, signer, baseUrl, now } = parts;
  const [window, contest] = await Promise.all([contests.window(payment), contests.contest(payment)]);
  if (window === null || contest === null || contest.answer !== null) return;
  const judged = window.isWaiting ? await judge(parts, window, contest.claim) : { rule: WINDOW_CLOSED, facts: [] };
  await contests.answer(payment, async (isOpen) => {
    const at = now();
    const url = `${baseUrl}${contestPath(payment)}`;
    // A finding that comes too late is published but changes nothing.
    const found = isOpen ? judged : { rule: WINDOW_CLOSED, facts: judged.facts };
    const unsigned = contestRecord({ contest, window, judged: found }, { issuer: signer.issuer, url, now: at });
    const document = await signer.signAsText(unsigned, at);
    const { decision, id } = found.rule;
    const { maxAmount } = window.hold.info;
    // A refund costs its payer no gas.
    const gas = decision === "refund" ? gasCharged({ decision: "release", isContestable: true }, maxAmount) : 0n;
    return { decision, rule: id, record: recordHash(document), document, gas };
  });
}

async function judge(parts: ContestParts, window: OpenedWindow, claim: ContestClaim): Promise<Judged> {
  const { hold, promised, delivered } = window;
  const noGround: Judged = { rule: NO_GROUND, facts: [] };
  switch (claim.category) {
    case "expect": {
      if (promised.expect === null) return noGround;
      const { claim: own, seen } = promised.expect;
      const looked = { fetcher: { attempt: async () => seen } };
      const { verdict, facts } = await gatherEvidence({ ...parts.evidence, ...looked }, own, NEVER);
      return judgedBy(
        verdict,
        facts.filter(({ fact }) => fact === "condition"),
      );
    }
    case "http-delivery": {
      if (promised.httpDelivery === null) return noGround;
      const { verdict, facts } = await gatherEvidence(parts.evidence, promised.httpDelivery, NEVER);
      return judgedBy(verdict, facts);
    }
    case "payload-hash": {
      // At the block of the evaluation, because a merchant that is a contract may have revoked its signature since
      // then.
      const digest = signedDigest(hold, hashedClaim(claim.delivery), window);
      const signed = { signer: hold.info.receiver, digest, signature: claim.delivery.signature };
      const isMerchants = await parts.chain.isSignedAt(window.block, signed);
      return isMerchants ? judgePayloadHash(delivered, claim.delivery) : noGround;
    }
    default:
      return claim satisfies never;
  }
}

/** Every attempt has its own deadline. */
const NEVER = new AbortController().signal;
