import { type Hex, hashTypedData, isAddressEqual, recoverAddress } from "viem";
import { NETWORKS } from "./networks.ts";
import { InputError, quote } from "./refusal.ts";
import { isObject, type Json, type JsonObject, parseStrictJson } from "./strict-json.ts";

/** The EIP-3009 order to pay, as USDC defines it. */
const TYPES = {
  TransferWithAuthorization: [
    { name: "from", type: "address" },
    { name: "to", type: "address" },
    { name: "value", type: "uint256" },
    { name: "validAfter", type: "uint256" },
    { name: "validBefore", type: "uint256" },
    { name: "nonce", type: "bytes32" },
  ],
} as const;

export interface FailProofReport {
  /** Whether the wallet signed exactly the order that the record states it should have refused. */
  readonly valid: boolean;
  /** Every statement of the proof that was checked, and whether it holds. */
  readonly checks: readonly { readonly statement: string; readonly holds: boolean }[];
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
  const record = object(parseStrictJson(source), "the record");
  if (record.proof === undefined)
    throw new InputError("The record has no published proof. It is published once the signature has expired.");
  const proof = object(record.proof, "proof");
  const typed = object(proof.typed_data, "proof.typed_data");
  const message = object(typed.message, "proof.typed_data.message");
  const challenge = object(proof.challenge, "proof.challenge");
  const chainId = Number(object(typed.domain, "proof.typed_data.domain").chainId);
  const known = Object.values(NETWORKS);
  const usdc = known.find((network) => network.chainId === chainId)?.usdc;
  if (usdc === undefined)
    throw new InputError(
      `The typed data is for chain ${quote(chainId)}; expected ${known.map((network) => network.chainId).join(" or ")}.`,
    );
  const { digest, signer } = await recover(proof, message, { chainId, ...usdc });
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

async function recover(
  { signature }: JsonObject,
  message: JsonObject,
  { chainId, address, name }: { chainId: number; address: Hex; name: string },
): Promise<{ digest: Hex; signer: string }> {
  if (typeof signature !== "string" || !/^0x[0-9a-f]{130}$/i.test(signature))
    throw new InputError("The signature is not 65 bytes long: a contract made it, and only the chain can check it.");
  const domain = { name, version: "2", chainId, verifyingContract: address };
  const primaryType = "TransferWithAuthorization";
  const digest = hashTypedData({ domain, types: TYPES, primaryType, message: authorization(message) });
  // Bytes that are not a signature have no signer.
  const signer = await recoverAddress({ hash: digest, signature: signature as Hex }).catch(() => "no signer");
  return { digest, signer };
}

/** The fields of the order. @throws InputError if one is missing or malformed */
function authorization({ from, to, value, validAfter, validBefore, nonce }: JsonObject) {
  const take = (field: Json | undefined, pattern: RegExp, name: string): string => {
    if (typeof field === "string" && pattern.test(field)) return field;
    throw new InputError(`proof.typed_data.message.${name} is ${quote(field)}, which is not a valid value.`);
  };
  const account = (field: Json | undefined, name: string) =>
    take(field, /^0x[0-9a-f]{40}$/i, name).toLowerCase() as Hex;
  const whole = (field: Json | undefined, name: string) => BigInt(take(field, /^\d{1,77}$/, name));
  return {
    from: account(from, "from"),
    to: account(to, "to"),
    value: whole(value, "value"),
    validAfter: whole(validAfter, "validAfter"),
    validBefore: whole(validBefore, "validBefore"),
    nonce: take(nonce, /^0x[0-9a-f]{64}$/i, "nonce") as Hex,
  };
}

function statedSignature(record: JsonObject): JsonObject {
  const detected = object(record.detected, "detected");
  const behaviour = object(detected.behaviour, "detected.behaviour");
  return object(behaviour.signature, "detected.behaviour.signature");
}

const check = (statement: string, holds: boolean) => ({ statement, holds });

const same = (one: Json | undefined, other: Json | undefined): boolean =>
  typeof one === "string" &&
  typeof other === "string" &&
  [one, other].every((text) => /^0x[0-9a-f]{40}$/i.test(text)) &&
  isAddressEqual(one.toLowerCase() as Hex, other.toLowerCase() as Hex);

function object(value: Json | undefined, what: string): JsonObject {
  if (isObject(value)) return value;
  throw new InputError(`${what} is not a JSON object; expected the JSON record of a certificate.`);
}
