import { type Check, check } from "../offer-receipt/check.ts";
import { InputError, quote } from "../refusal.ts";
import { type Json, type JsonObject, objectIn } from "../strict-json.ts";
import { type Expectation, type Report, verifyDocument } from "../verify-document.ts";

export interface StatementReport extends Omit<Report, "document"> {
  /** Empty unless the signature is valid. */
  readonly checks: readonly Check[];
  /** The statement, once every check holds: read it from here, never from the text again. */
  readonly document: JsonObject | null;
}

/** The expected signer, and further conditions on the statement. */
export interface ExpectedStatement extends Expectation {
  /** The authorization that the statement must be about, in the form of x402. */
  readonly authorization?: JsonObject | undefined;
  /** The payer's signature of it, which a statement does not repeat: 65 bytes in hex. */
  readonly signature?: string | undefined;
}

const MEMBERS = ["from", "to", "value", "validAfter", "validBefore", "nonce"] as const;

/**
 * Checks a signed statement of the status of an authorization (EIP-3009): its signature, and that its conclusion
 * follows from the facts that it names. Nothing is fetched, so the chain is not checked: the statement names the blocks
 * to look at.
 * @throws InputError when the expectation is invalid
 */
export async function checkStatement(
  source: string | Uint8Array,
  expected: ExpectedStatement,
): Promise<StatementReport> {
  const { document, ...report } = await verifyDocument(source, expected);
  if (document === null) return { ...report, checks: [], document };
  const checks = [
    check("it is a statement of a settlement", document.type === "SettlementStatement"),
    ...checksOf(document),
    ...agreement(document, expected.authorization),
    ...(await signatureChecks(document, expected.signature)),
  ];
  const valid = report.valid && checks.every(({ holds }) => holds);
  return { ...report, valid, checks, document: valid ? document : null };
}

/**
 * Recomputes the digest that the payer signed, and recovers the signer if the signature is given. Only the chain can
 * show that a contract wallet accepted one (ERC-1271).
 */
async function signatureChecks(document: JsonObject, given: string | undefined): Promise<readonly Check[]> {
  const [shown, signed] = [objectIn(document.signature), objectIn(document.authorization)];
  if (shown.verified !== true)
    return given === undefined ? [] : [check("the payer's signature was shown to the issuer", false)];
  const { digestOf, recovered } = await import("./typed-data.ts");
  const digest = digestOf(signed, String(objectIn(document.settlement).network), String(shown.primary_type));
  return [
    check("its digest is its authorization's", digest !== null && shown.digest === digest),
    ...(given === undefined
      ? []
      : [
          check(
            "the signature is by the payer's own key (a contract wallet's is checked on its chain only)",
            digest !== null && (await recovered(digest, given)) === signed.from,
          ),
        ]),
  ];
}

function checksOf(document: JsonObject): readonly Check[] {
  const { authorization, settlement, signature } = document;
  const [signed, shown] = [objectIn(authorization), objectIn(settlement)];
  const isVerified = objectIn(signature).verified === true;
  return [
    check("it is about the payer and the nonce of its authorization", isAbout(signed, shown)),
    check(
      "it states what it is conditional on",
      isVerified ? document.conditional_on === null : document.conditional_on === "authorization.validBefore",
    ),
    ...outcome(signed, shown),
  ];
}

const isAbout = (signed: JsonObject, shown: JsonObject): boolean =>
  typeof signed.from === "string" &&
  typeof signed.nonce === "string" &&
  signed.from === shown.from &&
  signed.nonce === shown.nonce;

function outcome(signed: JsonObject, shown: JsonObject): readonly Check[] {
  switch (shown.status) {
    case "settled":
      return [check("the transfer is the authorization's, in its window", isTransferOf(signed, shown))];
    case "replaced":
      return [check("the transfer is not the authorization's", !isTransferOf(signed, shown))];
    case "expired":
      return [
        check("it is final", shown.final === true),
        check("its end is the authorization's", shown.valid_before === signed.validBefore),
        check(
          "the final block is not before validBefore",
          isAtOrAfter(objectIn(shown.final_block).time, signed.validBefore),
        ),
      ];
    case "canceled":
      return [check("it names no transfer", shown.to === undefined && shown.value === undefined)];
    case "pending":
    case "used":
      return [check("it is not final", shown.final === false)];
    default:
      return [check(`its status is known: ${quote(shown.status)}`, false)];
  }
}

/** USDC accepts an authorization in a block after `validAfter` and before `validBefore`. */
const isTransferOf = (signed: JsonObject, shown: JsonObject): boolean =>
  shown.to === signed.to &&
  shown.value === signed.value &&
  isAtOrAfter(shown.block_time, signed.validAfter, 1n) &&
  !isAtOrAfter(shown.block_time, signed.validBefore);

/** Returns whether an ISO 8601 time is at least `more` seconds after a time in Unix seconds. */
function isAtOrAfter(time: Json | undefined, seconds: Json | undefined, more = 0n): boolean {
  const at = typeof time === "string" ? Date.parse(time) : Number.NaN;
  if (Number.isNaN(at) || typeof seconds !== "string" || !/^\d{1,78}$/.test(seconds)) return false;
  return BigInt(Math.floor(at / 1000)) >= BigInt(seconds) + more;
}

function agreement(document: JsonObject, expected: JsonObject | undefined): readonly Check[] {
  if (expected === undefined) return [];
  const signed = objectIn(document.authorization);
  return MEMBERS.map((name) => {
    if (typeof expected[name] !== "string")
      throw new InputError(
        `The expected authorization has no ${name}: expected ${MEMBERS.join(", ")}, all of them strings.`,
      );
    return check(`${name} is ${quote(expected[name])}`, String(signed[name]) === String(expected[name]).toLowerCase());
  });
}
