import { type Hex, isAddressEqual, recoverAddress } from "viem";
import { NETWORKS } from "./networks.ts";
import { type Check, check } from "./offer-receipt/check.ts";
import { InputError, parseInput, quote } from "./refusal.ts";
import { digestOf } from "./settlement/typed-data.ts";
import { isObject, type Json, type JsonObject, parseStrictJson } from "./strict-json.ts";

export interface FailProofReport {
  /** Whether the wallet signed exactly the order that the record states it should have refused. */
  readonly valid: boolean;
  /** Every statement of the proof that was checked, and whether it holds. */
  readonly checks: readonly Check[];
  readonly signer: string;
  /** Atomic USDC. */
  readonly amount: string;
  readonly payTo: string;
}

/**
 * Checks the published proof of a FAIL from its certificate's JSON record (`/cert/<id>`) again: hashes the typed data
 * (EIP-712), recovers the signer, and compares both with the record. Nothing is fetched.
 * @throws InputError for a record without a published proof, or with a signature that only a contract could have made
 */
export async function checkFailProof(source: string | Uint8Array): Promise<FailProofReport> {
  const json = parseInput(
    () => parseStrictJson(source),
    (reason) => `The record cannot be read: ${reason}.`,
  );
  const record = object(json, "the record");
  if (record.proof === undefined)
    throw new InputError("The record has no published proof. It is published once the signature has expired.");
  const proof = object(record.proof, "proof");
  const typed = object(proof.typed_data, "proof.typed_data");
  const message = object(typed.message, "proof.typed_data.message");
  const challenge = object(proof.challenge, "proof.challenge");
  const chainId = Number(object(typed.domain, "proof.typed_data.domain").chainId);
  const known = Object.entries(NETWORKS);
  const network = known.find(([, one]) => one.chainId === chainId)?.[0];
  if (network === undefined)
    throw new InputError(
      `The typed data is for chain ${quote(chainId)}; expected ${known.map(([, one]) => one.chainId).join(" or ")}.`,
    );
  const { digest, signer } = await recover(proof, message, network);
  const stated = statedSignature(record);
  const checks = [
    check("the typed data hashes to the digest of the proof", digest === proof.digest),
    check("the typed data hashes to the digest that the certificate stated at issuance", digest === stated.digest),
    check("the signature recovers to the signer of the proof", same(signer, proof.signer)),
    check("the signer is the certified wallet", same(signer, record.wallet)),
    check("the signer is the payer of the order", same(signer, message.from)),
    check("the order pays the recipient of the challenge", same(message.to, challenge.pay_to)),
    check("the order is for the amount of the challenge", message.value === challenge.amount),
    check("the record is a FAIL", record.verdict === "fail"),
  ];
  return {
    valid: checks.every(({ holds }) => holds),
    checks,
    signer,
    amount: String(message.value),
    payTo: String(message.to),
  };
}

async function recover({ signature }: JsonObject, message: JsonObject, network: string) {
  if (typeof signature !== "string" || !/^0x[0-9a-f]{130}$/i.test(signature))
    throw new InputError("The signature is not 65 bytes long: a contract made it, and only the chain can check it.");
  const digest = digestOf(authorization(message), network, "TransferWithAuthorization");
  if (digest === null) return { digest, signer: "no signer" };
  // Bytes that are not a signature have no signer.
  const signer = await recoverAddress({ hash: digest, signature: signature as Hex }).catch(() => "no signer");
  return { digest, signer };
}

const ADDRESS = /^0x[0-9a-f]{40}$/i;
const WHOLE = /^\d{1,77}$/;
const FIELDS = {
  from: ADDRESS,
  to: ADDRESS,
  value: WHOLE,
  validAfter: WHOLE,
  validBefore: WHOLE,
  nonce: /^0x[0-9a-f]{64}$/i,
} as const;

/** Returns the fields of the order. @throws InputError if one is missing or malformed */
function authorization(message: JsonObject): JsonObject {
  const fields = Object.entries(FIELDS).map(([name, pattern]) => {
    const field = message[name];
    if (typeof field === "string" && pattern.test(field)) return [name, field.toLowerCase()] as const;
    throw new InputError(`proof.typed_data.message.${name} is ${quote(field)}, which is not a valid value.`);
  });
  return Object.fromEntries(fields);
}

function statedSignature(record: JsonObject): JsonObject {
  const detected = object(record.detected, "detected");
  const behaviour = object(detected.behaviour, "detected.behaviour");
  return object(behaviour.signature, "detected.behaviour.signature");
}

const same = (one: Json | undefined, other: Json | undefined): boolean =>
  typeof one === "string" &&
  typeof other === "string" &&
  [one, other].every((text) => ADDRESS.test(text)) &&
  isAddressEqual(one.toLowerCase() as Hex, other.toLowerCase() as Hex);

function object(value: Json | undefined, what: string): JsonObject {
  if (isObject(value)) return value;
  throw new InputError(`${what} is not a JSON object; expected the JSON record of a certificate.`);
}
