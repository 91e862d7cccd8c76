import { InputError, quote } from "../refusal.ts";
import { isObject, type Json, type JsonObject } from "../strict-json.ts";
import { type Expectation, type Report, verifyDocument } from "../verify-document.ts";

/** Something that a statement says, and whether it holds. */
interface StatementCheck {
  readonly statement: string;
  readonly holds: boolean;
}

export interface StatementReport extends Omit<Report, "document"> {
  /** Empty unless the signature is valid. */
  readonly checks: readonly StatementCheck[];
  /** The statement, once everything holds: read from here, never from the text again. */
  readonly document: JsonObject | null;
}

/** What is expected of a statement besides its signer. */
export interface ExpectedStatement extends Expectation {
  /** The authorization that it must be about, as x402 carries it. */
  readonly authorization?: JsonObject | undefined;
  /** The payer's signature over it, which a statement does not repeat: 65 bytes in hexadecimal digits. */
  readonly signature?: string | undefined;
}

const MEMBERS = ["from", "to", "value", "validAfter", "validBefore", "nonce"] as const;

/**
 * Checks a signed statement of what became of an authorization (EIP-3009): its signature, and that what it says follows
 * from what it names. Nothing is fetched, so that the chain shows the same is not checked: the blocks are named.
 * @throws InputError when the expectation is wrong
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
 * Recomputes what the payer is said to have signed, and recovers the signer if the signature is given. That a contract
 * wallet accepted one (ERC-1271) only its chain can say.
 */
async function signatureChecks(document: JsonObject, given: string | undefined): Promise<readonly StatementCheck[]> {
  const [shown, signed] = [memberOf(document.signature), memberOf(document.authorization)];
  if (shown.verified !== true)
    return given === undefined ? [] : [check("the payer's signature was shown to the issuer", false)];
  const { digestOf, recovered } = await import("./typed-data.ts");
  const digest = digestOf(signed, String(memberOf(document.settlement).network), String(shown.primary_type));
  return [
    check("its digest is that of its authorization", digest !== null && shown.digest === digest),
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

const check = (statement: string, holds: boolean): StatementCheck => ({ statement, holds });

const memberOf = (value: Json | undefined): JsonObject => (isObject(value) ? value : {});

function checksOf(document: JsonObject): readonly StatementCheck[] {
  const { authorization, settlement, signature } = document;
  const [signed, shown] = [memberOf(authorization), memberOf(settlement)];
  const isVerified = memberOf(signature).verified === true;
  return [
    check("it is about the payer and the nonce of its authorization", isAbout(signed, shown)),
    check(
      "it says what it rests on",
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

function outcome(signed: JsonObject, shown: JsonObject): readonly StatementCheck[] {
  switch (shown.status) {
    case "settled":
      return [check("the transfer is the authorization's, in its window", isTransferOf(signed, shown))];
    case "replaced":
      return [check("the transfer is not the authorization's", !isTransferOf(signed, shown))];
    case "expired":
      return [
        check("it is final", shown.final === true),
        check("its end is that of the authorization", shown.valid_before === signed.validBefore),
        check(
          "the final block is not before validBefore",
          isAtOrAfter(memberOf(shown.final_block).time, signed.validBefore),
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

/** USDC takes an authorization in a block after `validAfter` and before `validBefore`. */
const isTransferOf = (signed: JsonObject, shown: JsonObject): boolean =>
  shown.to === signed.to &&
  shown.value === signed.value &&
  isAtOrAfter(shown.block_time, signed.validAfter, 1n) &&
  !isAtOrAfter(shown.block_time, signed.validBefore);

/** Whether a time in ISO 8601 is at least this many seconds after a number of Unix seconds. */
function isAtOrAfter(time: Json | undefined, seconds: Json | undefined, more = 0n): boolean {
  const at = typeof time === "string" ? Date.parse(time) : Number.NaN;
  if (Number.isNaN(at) || typeof seconds !== "string" || !/^\d{1,78}$/.test(seconds)) return false;
  return BigInt(Math.floor(at / 1000)) >= BigInt(seconds) + more;
}

function agreement(document: JsonObject, expected: JsonObject | undefined): readonly StatementCheck[] {
  if (expected === undefined) return [];
  const signed = memberOf(document.authorization);
  return MEMBERS.map((name) => {
    if (typeof expected[name] !== "string")
      throw new InputError(
        `The expected authorization has no ${name}: expected ${MEMBERS.join(", ")}, all of them text.`,
      );
    return check(`${name} is ${quote(expected[name])}`, String(signed[name]) === String(expected[name]).toLowerCase());
  });
}
