import { makeBadge } from "badge-maker";
import { REHEARSED_ON } from "../platform/networks.ts";
import { counted, day, html, longDay, type Markup } from "../platform/page/html.ts";
import { rosette } from "../platform/page/rosette.ts";
import {
  currentFails,
  isAboutWallet,
  isFresh,
  type ShownCertificate,
  VALID_FOR_DAYS,
  type WalletFail,
} from "./certificate.ts";
import { PRODUCTS } from "./products.ts";

/** The appearance of a certificate at a given instant, shared by its page, its badge, and its picture. */
export interface Appearance {
  readonly tone: "pass" | "fail" | "gray";
  readonly word: "PASS" | "FAIL";
  readonly state: "Current" | "Not verified" | "Failed" | "Expired" | "Reversed" | "Not counted";
  /**
   * The result with its state: PASS, FAIL, Expired PASS, Reversed FAIL, Not counted FAIL; "Not verified" for a PASS if
   * a FAIL also counts.
   */
  readonly title: string;
  readonly sentence: string;
  /** For pictures in caches, so its dates are absolute and it stays true. */
  readonly short: string;
}

/**
 * Returns the appearance of a certificate. A reversal outranks a FAIL that is not about the wallet, which outranks
 * expiry, and all of them outrank the result. A PASS is green only while no FAIL of the same wallet counts.
 */
export function appearance(certificate: ShownCertificate, now: Date): Appearance {
  const word = certificate.result === "pass" ? "PASS" : "FAIL";
  const end = longDay(certificate.validUntil);
  const gray = (state: "Reversed" | "Not counted" | "Expired", sentence: string, short: string): Appearance => ({
    ...{ tone: "gray", word, state, title: `${state} ${word}`, sentence, short },
  });
  if (certificate.reversedAt !== null)
    return gray(
      "Reversed",
      `The settlement behind this ${word} was found missing from the chain on ${longDay(certificate.reversedAt)}. The record stays public but no longer counts.`,
      `reversed ${day(certificate.reversedAt)}`,
    );
  if (!isAboutWallet(certificate))
    return gray(
      "Not counted",
      "In this run the authorization stayed valid for too long. A signature does not show which site asked for that, so this FAIL does not count against the wallet.",
      `not counted · tested ${day(certificate.issuedAt)}`,
    );
  if (!isFresh(certificate, now))
    return gray(
      "Expired",
      `This ${word} is a true record of its run, but its ${VALID_FOR_DAYS} days ended on ${end}. Ask the agent for a fresh certificate.`,
      `expired ${day(certificate.validUntil)}`,
    );
  if (certificate.result === "fail") {
    const sentence = `This FAIL is fresh and counts against the wallet until ${end}. The record stays public after that.`;
    return {
      tone: "fail",
      word,
      state: "Failed",
      title: word,
      sentence,
      short: `failed · tested ${day(certificate.issuedAt)}`,
    };
  }
  const [fail, ...others] = currentFails(certificate, now);
  if (fail !== undefined) return unverified(fail, others.length);
  const sentence = `This PASS is fresh and counts until ${end}.`;
  const short = `${certificate.level.toLowerCase()} · valid until ${day(certificate.validUntil)}`;
  return { tone: "pass", word, state: "Current", title: word, sentence, short };
}

/** The appearance of a PASS whose wallet is not verified because of this FAIL and `others` more. */
function unverified({ product, issuedAt, validUntil }: WalletFail, others: number): Appearance {
  const more =
    others === 0 ? "" : `, and ${counted(others, "more FAIL")} ${others === 1 ? "counts" : "count"} against it`;
  const failed = `it failed the ${PRODUCTS[product].title.toLowerCase()} on ${longDay(issuedAt)}`;
  return {
    tone: "fail",
    word: "PASS",
    state: "Not verified",
    title: "Not verified",
    sentence: `This run passed, but the wallet is not verified because ${failed}, which counts until ${longDay(validUntil)}${more}.`,
    short: `not verified · FAIL in ${product} ${day(issuedAt)}`,
  };
}

const COLORS = { pass: "#16704c", fail: "#b3261e", gray: "#646c75" } as const;
const LABEL_COLOR = "#2a343e";

interface Drawn {
  readonly id: string;
  readonly label: string;
  readonly tone: keyof typeof COLORS;
  readonly message: string;
}

/** Draws a badge as SVG, with a role, a label, and a title. */
export const drawBadge = ({ id, tone, label, message }: Drawn): string =>
  makeBadge({
    label: REHEARSED_ON === null ? label : `${label} (${REHEARSED_ON.name})`,
    message,
    color: COLORS[tone],
    labelColor: LABEL_COLOR,
    idSuffix: id,
  });

/** Renders the README badge. Its date is absolute, so a cached copy stays true. */
export function renderBadge(certificate: ShownCertificate, now: Date): string {
  const { tone, short } = appearance(certificate, now);
  return drawBadge({ id: certificate.id, label: PRODUCTS[certificate.product].badge, tone, message: short });
}

/** Renders the badge for an ID without a certificate, or of a certificate that cannot be read right now. */
export const renderPlaceholderBadge = (error: "missing" | "unavailable"): string =>
  makeBadge({
    label: "agent payments",
    message: error === "missing" ? "no such certificate" : "unavailable",
    color: COLORS.gray,
    labelColor: LABEL_COLOR,
  });

interface Seal {
  readonly word: string;
  readonly state: string;
}

const counts = (state: string): boolean => state === "Current" || state === "Failed";

/** Draws the engraved seal of a certificate, 200 units wide: its unique figure around its result and state. */
export const emblem = (id: string, { word, state }: Seal): Markup =>
  html`${rosette(id)}<text x="100" y="${counts(state) ? 111 : 104}" font-size="31" text-anchor="middle" fill="currentColor">${word}</text>${
    !counts(state) &&
    html`<text x="100" y="123" font-size="14" text-anchor="middle" fill="currentColor">${state.toLowerCase()}</text>`
  }`;
