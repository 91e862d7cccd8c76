import type { Claims } from "./claims.ts";
import { InputError, quote } from "./refusal.ts";
import { isObject, type Json, type JsonObject } from "./strict-json.ts";
import { CAPABILITIES, type Capability } from "./vocabulary.ts";

/** The possible requirements: a verified wallet or seller, or a fresh PASS for a capability. */
export const REQUIREMENTS: readonly Requirement[] = ["verified", ...CAPABILITIES];
export type Requirement = "verified" | Capability;

/**
 * Parses requirements from a text such as `verified,can_pay`.
 * @throws InputError for an unknown name, and for a text without any
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
 * Returns the requirements that a credential's subject or a verification record does not meet. A requirement that it
 * does not mention is not met, nor is one met only on a test network (`test_network`).
 * @param at the time at which each PASS must be fresh
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

/** Requirements in addition to a valid signature. */
export interface Required {
  readonly names: readonly Requirement[];
  /** The wallet that the document must be about, in any case; undefined for any wallet. */
  readonly wallet?: string | undefined;
  readonly at: Date;
}

/**
 * Returns the reasons why a document does not meet the requirements, one sentence each; empty if it does. Only a
 * wallet's or a seller's credential states whether its subject is verified; a certificate, a verdict, or any other
 * document does not.
 */
export function shortcomings(
  document: JsonObject,
  { kind, wallet, about, summary }: Claims,
  required: Required,
): readonly string[] {
  const isOther = required.wallet !== undefined && required.wallet.toLowerCase() !== wallet;
  const isCredential = kind === "wallet" || kind === "seller";
  const { credentialSubject: subject } = document;
  const lacking = unmet(isCredential && isObject(subject) ? subject : {}, required.names, required.at);
  return [
    ...(isOther ? [`it is about ${about}, not about wallet ${required.wallet}`] : []),
    ...lacking.map((name) => {
      if (!isCredential) return `${name} is required, and only a wallet's or a seller's credential can state it`;
      return name === "verified" ? summary : `no fresh PASS for ${name}`;
    }),
  ];
}
