import type { Claims } from "./claims.ts";
import { InputError, quote } from "./refusal.ts";
import { isObject, type Json, type JsonObject } from "./strict-json.ts";
import { CAPABILITIES, type Capability } from "./vocabulary.ts";

/** What a credential can be required to say: that its wallet is verified, or that a capability has a fresh PASS. */
export const REQUIREMENTS: readonly Requirement[] = ["verified", ...CAPABILITIES];
export type Requirement = "verified" | Capability;

/**
 * Reads requirements from a text such as `verified,can_pay`.
 * @throws InputError for a name that is not one of them, and for a text without any
 */
export function parseRequirements(text: string): readonly Requirement[] {
  const names = text.split(",").map((name) => name.trim());
  return names.map((name) => {
    const known = REQUIREMENTS.find((one) => one === name);
    if (known !== undefined) return known;
    throw new InputError(`${quote(name)} cannot be required: expected ${REQUIREMENTS.join(", ")}.`);
  });
}

/**
 * Which of these a credential's subject, or a verification record, does not say. What it does not mention does not hold, and
 * what comes from a test network (`test_network`) does not either.
 * @param at when each PASS has to be fresh
 */
export function unmet(subject: JsonObject, required: readonly Requirement[], at: Date): readonly Requirement[] {
  const { test_network: test, verified, capabilities } = subject;
  if (test !== undefined) return required;
  return required.filter((one) => (one === "verified" ? verified !== true : !isProven(capabilities, one, at)));
}

function isProven(capabilities: Json | undefined, name: Requirement, at: Date): boolean {
  const capability = isObject(capabilities) ? capabilities[name] : undefined;
  if (!isObject(capability)) return false;
  const { result, fresh, valid_until: until } = capability;
  return result === "pass" && fresh === true && typeof until === "string" && at.getTime() < Date.parse(until);
}

/** What is required of a document besides a valid signature. */
export interface Required {
  readonly names: readonly Requirement[];
  /** The wallet that it must be about, in any case; undefined for any wallet. */
  readonly wallet?: string | undefined;
  readonly at: Date;
}

/**
 * Why a document does not meet a requirement, a sentence each; empty if it does. Only the credential of a wallet or of a
 * seller says whether its subject is verified: a certificate, a verdict, or any other document never does.
 */
export function shortcomings(
  document: JsonObject,
  { kind, wallet, about, summary }: Claims,
  required: Required,
): readonly string[] {
  const isOther = required.wallet !== undefined && required.wallet.toLowerCase() !== wallet;
  const isStanding = kind === "wallet" || kind === "seller";
  const { credentialSubject: subject } = document;
  const lacking = unmet(isStanding && isObject(subject) ? subject : {}, required.names, required.at);
  return [
    ...(isOther ? [`it is about ${about}, not about wallet ${required.wallet}`] : []),
    ...lacking.map((name) => {
      if (!isStanding) return `${name} is required, and only a wallet's or a seller's credential can say that`;
      return name === "verified" ? summary : `no fresh PASS for ${name}`;
    }),
  ];
}
