import type { Signer } from "../../platform/signing/document.ts";
import { isAboutWallet, isFresh, type MarkedCertificate } from "../certificate.ts";
import { credentialUrl } from "../links.ts";
import type { CertificateStore } from "../store.ts";
import type { Registries } from "./chain.ts";
import { certificateCredential } from "./credential.ts";
import type { Carried, PublicationReason, Stated } from "./publication.ts";
import type { Due, PublicationStore } from "./store.ts";

interface PublishingParts {
  readonly store: PublicationStore;
  readonly registries: Registries;
  readonly certificates: Pick<CertificateStore, "get">;
  readonly signer: Signer;
  readonly baseUrl: string;
  /** The gas that all publications may use per day (UTC). Withdrawals count toward it but are never refused. */
  readonly gasPerDay: bigint;
  readonly now: () => Date;
  readonly log: { warn(facts: object, message: string): void; error(facts: object, message: string): void };
}

const BATCH = 16;
/** Transactions mined without effect still cost gas, so one step gets at most this many. */
const MOST_ATTEMPTS = 3;
/** A node may lag behind the chain. */
const GRACE_SECONDS = 600;
/** The sessions of behavioral tests end much sooner. */
const UNCERTIFIED_SECONDS = 86_400;
const LOOK_AGAIN_SECONDS = { uncertified: 30, unfit: 15, spent: 600, pending: 4, unfinal: 30, unsettled: 60 } as const;

/** Increases from a few seconds to ten minutes. */
const backOff = ({ ageSeconds }: Due): number => Math.min(Math.max(ageSeconds / 4, LOOK_AGAIN_SECONDS.pending), 600);

/**
 * Carries orders to the ERC-8004 registries until they are final there. Returns the number of publications processed.
 */
export const createPublishing =
  (parts: PublishingParts): (() => Promise<number>) =>
  async () => {
    const due = await parts.store.take(BATCH);
    await Promise.all(due.map((one) => tryStep(parts, one)));
    return due.length;
  };

async function tryStep(parts: PublishingParts, due: Due): Promise<void> {
  try {
    await step(parts, due);
  } catch (error) {
    const { certificate, registry } = due;
    parts.log.warn({ err: error, certificate, registry }, "a publication is waiting for the chain");
    await parts.store.lookAgain(due, backOff(due)).catch(() => undefined);
  }
}

async function step(parts: PublishingParts, due: Due): Promise<void> {
  const certificate = await parts.certificates.get(due.certificate);
  if (certificate === null) return uncertified(parts, due);
  switch (due.state) {
    case "ordered":
      return begin(parts, due, certificate);
    case "sending":
      return publish(parts, due, certificate);
    case "withdrawing":
      return withdraw(parts, due, certificate);
    default:
      return watch(parts, due, certificate);
  }
}

async function uncertified({ store }: PublishingParts, due: Due): Promise<void> {
  if (due.ageSeconds < UNCERTIFIED_SECONDS) return store.lookAgain(due, LOOK_AGAIN_SECONDS.uncertified);
  await store.change(due, { state: "refused", reason: "no_certificate" });
}

/** Returns the certificate's own reason against publishing it, or null. */
function objection(certificate: MarkedCertificate, now: Date): PublicationReason | null {
  if (certificate.reversedAt !== null) return "reversed";
  if (!isAboutWallet(certificate)) return "not_about_wallet";
  return isFresh(certificate, now) ? null : "expired";
}

/** Nothing has been sent yet, so this is the last check of whether it may be. */
async function begin(parts: PublishingParts, due: Due, certificate: MarkedCertificate): Promise<void> {
  const { store, registries, signer, baseUrl, gasPerDay } = parts;
  const objected = objection(certificate, parts.now());
  if (objected !== null) return void (await store.change(due, { state: "refused", reason: objected }));
  const unfit = await registries.unfit(due, certificate.wallet);
  if (unfit !== null && due.ageSeconds < GRACE_SECONDS) return store.lookAgain(due, LOOK_AGAIN_SECONDS.unfit);
  if (unfit !== null) return void (await store.change(due, { state: "refused", reason: unfit }));
  const document = await signer.signAsText(certificateCredential(certificate, signer.issuer, baseUrl), parts.now());
  await store.keep(certificate.id, document);
  const allowed = { gas: registries.gas, perDay: gasPerDay };
  const { publisher } = registries;
  if (!(await store.charge(due, { state: "sending", publisher }, allowed)))
    return store.lookAgain(due, LOOK_AGAIN_SECONDS.spent);
  await publish(parts, { ...due, state: "sending", publisher }, certificate);
}

async function publish(parts: PublishingParts, due: Due, certificate: MarkedCertificate): Promise<void> {
  const { store, registries } = parts;
  const carried = await registries.carry(due, await stated(parts, certificate), "publish");
  if (carried.state === "mined") {
    const { place, publisher, index: feedbackIndex } = carried;
    // The agent may have changed hands between the last check and the block. If so, the publication is withdrawn once
    // final.
    const isItsWallet = (await registries.walletAt(due.agent, place.block)) === certificate.wallet;
    const blame = isItsWallet ? {} : ({ reason: "other_wallet" } as const);
    await store.change(due, { state: "mined", place, publisher, feedbackIndex, ...blame });
    return;
  }
  if (carried.state === "unsent") {
    const lookInSeconds = backOff(due);
    await store.change(due, { state: "ordered", unspent: registries.gas, lookInSeconds });
    return;
  }
  await repeat(parts, due, { carried, from: "ordered" });
}

async function withdraw(parts: PublishingParts, due: Due, certificate: MarkedCertificate): Promise<void> {
  const { store, registries } = parts;
  if (due.publisher !== registries.publisher) return giveUp(parts, due, "only its publisher can withdraw it");
  const carried = await registries.carry(due, await stated(parts, certificate), "withdraw");
  if (carried.state === "mined")
    return void (await store.change(due, { state: "withdrawal_mined", place: carried.place }));
  if (carried.state === "unsent") return store.lookAgain(due, backOff(due));
  await repeat(parts, due, { carried, from: "withdrawing" });
}

interface Unserved {
  readonly carried: Carried;
  /** The state from which the next attempt starts. */
  readonly from: "ordered" | "withdrawing";
}

/** Waits for a transaction that is not mined yet. Retries one that was permanently mined without effect. */
async function repeat(parts: PublishingParts, due: Due, { carried, from }: Unserved): Promise<void> {
  if (carried.state !== "failed") return parts.store.lookAgain(due, LOOK_AGAIN_SECONDS.pending);
  const attempt = due.attempt + 1;
  if (attempt >= MOST_ATTEMPTS) return giveUp(parts, due, "the registry refuses it");
  await parts.store.change(due, { state: from, attempt, lookInSeconds: backOff(due) });
}

async function giveUp({ store, log }: PublishingParts, due: Due, reason: string): Promise<void> {
  const { certificate, registry, agent, feedbackIndex } = due;
  const facts = { certificate, registry, agent: agent.toString(), feedback_index: feedbackIndex?.toString() };
  log.error(facts, `a publication was abandoned: ${reason}`);
  await store.change(due, { state: "failed", reason: "registry" });
}

/**
 * Waits until the block is final. A publication is withdrawn only after that, because a reorganization could give
 * another feedback the index that is revoked.
 */
async function watch(parts: PublishingParts, due: Due, certificate: MarkedCertificate): Promise<void> {
  const { store, registries } = parts;
  const isWithdrawn = due.state === "withdrawal_mined";
  if (due.place === null) throw new Error("a publication is mined in no block");
  const state = await registries.blockState(due.place);
  if (state === "pending") return store.lookAgain(due, LOOK_AGAIN_SECONDS.unfinal);
  if (state === "unknown") return void (await store.change(due, { state: isWithdrawn ? "withdrawing" : "sending" }));
  if (isWithdrawn) return void (await store.change(due, { state: "withdrawn" }));
  const reason = certificate.reversedAt === null ? due.reason : "reversed";
  if (reason !== null) {
    const allowed = { gas: registries.gas, perDay: null };
    return void (await store.charge(due, { state: "withdrawing", attempt: 0, reason }, allowed));
  }
  if (!due.isSettled) return store.lookAgain(due, LOOK_AGAIN_SECONDS.unsettled);
  await store.change(due, { state: "published" });
}

async function stated({ store, baseUrl }: PublishingParts, certificate: MarkedCertificate): Promise<Stated> {
  const document = await store.document(certificate.id);
  if (document === null) throw new Error(`the certificate ${certificate.id} has no credential`);
  const { product, result } = certificate;
  return { product, isPass: result === "pass", url: credentialUrl(baseUrl, certificate), document };
}
