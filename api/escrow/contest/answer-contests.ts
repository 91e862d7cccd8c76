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

/** Contests that a pass takes up. */
export const AT_ONCE = 32;
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

/** Why a contest is not taken; the release goes on as if nobody had said anything. */
export type ContestRefusal = "no_window" | "not_the_payer" | "other_contest" | "over";

export interface Contests {
  /** Takes a payer's one contest and answers it, at once if that is possible. The same again gets the same answer. */
  contest(
    said: NewContest,
  ): Promise<(ContestView & { readonly isReplay: boolean }) | { readonly refused: ContestRefusal }>;
  /** A payment's window and what was said in it; null if it had none. */
  view(payment: Hex): Promise<ContestView | null>;
  /** Answers contests that nobody has answered yet, because a process died or too much was under way. */
  answerContests(): Promise<number>;
}

export function createContests(parts: ContestParts): Contests {
  const { contests, chain, log } = parts;
  const view = async (payment: Hex): Promise<ContestView | null> => {
    const [window, contest] = await Promise.all([contests.window(payment), contests.contest(payment)]);
    return window && { window, contest };
  };
  /** Whatever fails is tried again by a later pass, until anyone may refund the hold. */
  const attempt = async (payment: Hex): Promise<void> => {
    try {
      await answer(parts, payment);
    } catch (error) {
      if (!(error instanceof Busy)) log.warn({ err: error, payment }, "a contest could not be answered yet");
      await contests.lookAgain(payment, LOOK_AGAIN_SECONDS).catch(() => undefined);
    }
  };
  /** Others see that this process lives, and what it has taken is its own, until the work is done. */
  const present = async <T>(work: (owner: number) => Promise<T>): Promise<T> => {
    const { owner, leave } = await contests.enter();
    return work(owner).finally(leave);
  };
  const opens = (contest: Contest) =>
    present(async (owner) => {
      const opened = await contests.open(contest, owner);
      if (opened !== "opened") return opened;
      // Where others wait for a fetch, it waits with them: the next one is for the most urgent, not for the last who asks.
      const isNext = contest.claim.category !== "http-delivery" || !(await contests.areDue());
      await (isNext ? attempt(contest.payment) : contests.lookAgain(contest.payment, 0));
      return opened;
    });
  return {
    view,

    async contest(said) {
      const { payment, claimSha256, signature } = said;
      const window = await contests.window(payment);
      if (window === null) return { refused: "no_window" };
      const { hold } = window;
      const digest = contestDigest(hold, claimSha256);
      const isKnown = (await contests.contest(payment)) !== null;
      // Handed in when it arrives: a wallet may take its time to check a signature.
      const madeAt = isKnown ? null : await chain.time();
      if (!(await chain.isSigned(hold.info.payer, digest, signature))) return { refused: "not_the_payer" };
      const opened = madeAt === null ? "taken" : await opens({ ...said, madeAt });
      if (opened === "over") return { refused: "over" };
      const contest = await contests.contest(payment);
      if (contest?.claimSha256 !== claimSha256) return { refused: "other_contest" };
      return { window, contest, isReplay: opened === "taken" };
    },

    async answerContests() {
      if (!(await contests.areDue())) return 0;
      return present(async (owner) => {
        const taken = await contests.take(AT_ONCE, owner, await chain.time());
        await Promise.all(taken.map(attempt));
        return taken.length;
      });
    },
  };
}

/** Judges a contest and stores its answer. Its release waits for it until anyone may refund the hold. */
async function answer(parts: ContestParts, payment: Hex): Promise<void> {
  const { contests, signer, baseUrl, now } = parts;
  const [window, contest] = await Promise.all([contests.window(payment), contests.contest(payment)]);
  if (window === null || contest === null || contest.answer !== null) return;
  const judged = window.isWaiting ? await judge(parts, window, contest.claim) : { rule: WINDOW_CLOSED, facts: [] };
  await contests.answer(payment, async (isOpen) => {
    const at = now();
    const url = `${baseUrl}${contestPath(payment)}`;
    // What is found too late is published, and changes nothing.
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
      // At the evaluation's block: a merchant that is a contract may have taken its word back since.
      const digest = signedDigest(hold, hashedClaim(claim.delivery), window);
      const signed = { signer: hold.info.receiver, digest, signature: claim.delivery.signature };
      const isMerchants = await parts.chain.isSignedAt(window.block, signed);
      return isMerchants ? judgePayloadHash(delivered, claim.delivery) : noGround;
    }
    default:
      return claim satisfies never;
  }
}

/** Attempts have deadlines of their own. */
const NEVER = new AbortController().signal;
