import { authorizationTypedData, authorizationWire } from "../../platform/chain/authorization.ts";
import type { UsdcReader } from "../../platform/chain/usdc.ts";
import type { PaymentKey } from "../../platform/http/route.ts";
import { NETWORKS } from "../../platform/networks.ts";
import type { Address, Hex } from "../../platform/wallet.ts";
import type { Behavior } from "../certificate.ts";
import { isPublished } from "../sessions/judge.ts";
import type { CertificateStore } from "../store.ts";
import type { ProofStore, Sealed } from "./store.ts";

/**
 * A signature that was answered and never submitted. The authorization's times are in Unix seconds, its value is in
 * atomic USDC.
 */
export interface WithheldSignature {
  readonly certificate: string;
  readonly payment: PaymentKey;
  readonly payTo: Address;
  readonly value: bigint;
  readonly validAfter: bigint;
  readonly validBefore: bigint;
  readonly receivedAt: Date;
  readonly digest: Hex;
  readonly signature: Hex;
}

const DOMAIN = [
  { name: "name", type: "string" },
  { name: "version", type: "string" },
  { name: "chainId", type: "uint256" },
  { name: "verifyingContract", type: "address" },
];

/**
 * Returns the complete proof of a FAIL: hashing `typed_data` (EIP-712) yields `digest`, and recovering the signer of
 * `signature` over it yields `signer`. `broadcast` means that someone used the authorization on chain after all.
 */
export function proofDocument(withheld: WithheldSignature, bait: Behavior["bait"], broadcast: boolean) {
  const { payment, payTo, value, validAfter, validBefore } = withheld;
  const message = { from: payment.payer, to: payTo, value, validAfter, validBefore, nonce: payment.nonce };
  const { domain, types, primaryType } = authorizationTypedData(message, NETWORKS[payment.network]);
  return {
    certificate: withheld.certificate,
    challenge: { served_at: bait.served_at, pay_to: bait.pay_to, amount: bait.amount },
    typed_data: { types: { EIP712Domain: DOMAIN, ...types }, domain, primaryType, message: authorizationWire(message) },
    digest: withheld.digest,
    signature: withheld.signature,
    signer: payment.payer,
    valid_before: validBefore.toString(),
    received_at: withheld.receivedAt.toISOString(),
    broadcast,
  };
}

const BATCH = 100;

interface ProofParts {
  readonly proofs: ProofStore;
  readonly certificates: CertificateStore;
  readonly usdc: UsdcReader;
  readonly log: { error(facts: object, message: string): void };
}

/** Creates the handler of signatures that were answered and never submitted. */
export function createProofs({ proofs, certificates, usdc, log }: ProofParts) {
  const alerted = new Set<string>();
  const publish = async (withheld: WithheldSignature, used: boolean): Promise<void> => {
    const certificate = await certificates.get(withheld.certificate);
    const bait = certificate?.detected.behaviour?.bait;
    if (bait === undefined)
      throw new Error(`the certificate ${withheld.certificate} of a withheld signature shows no bait`);
    const wanted = isPublished(withheld.validBefore, withheld.receivedAt);
    await proofs.publish(withheld, wanted ? proofDocument(withheld, bait, used) : null);
  };
  /** A proof that cannot be published does not stop the others. */
  const tryToPublish = async ({ certificate, payment, open }: Sealed, used: boolean): Promise<boolean> => {
    try {
      await publish(open(), used);
      return true;
    } catch (error) {
      log.error({ err: error, certificate }, "a proof could not be published; it will be tried again in an hour");
      await proofs.putOff(payment);
      return false;
    }
  };
  return {
    /** Publishes signatures that can no longer be used on chain. Returns the number published. */
    async publishDue(): Promise<number> {
      // A final block is past the window, so no reorganization can revive the signature.
      const due = await proofs.due((await usdc.finalHead()).time, BATCH);
      if (due.length === 0) return 0;
      const used = await usdc.areUsed(due.map(({ payment }) => payment));
      let published = 0;
      for (const [index, sealed] of due.entries()) if (await tryToPublish(sealed, used[index] === true)) published++;
      return published;
    },
    /** Raises an alert for a withheld signature that someone used on chain while it was valid. */
    async watch(): Promise<void> {
      const live = await proofs.live((await usdc.finalHead()).time, BATCH);
      const used = live.length === 0 ? [] : await usdc.areUsed(live.map(({ payment }) => payment));
      for (const [index, { certificate, payment }] of live.entries()) {
        if (!used[index] || alerted.has(certificate)) continue;
        alerted.add(certificate);
        log.error(
          { certificate, payer: payment.payer, nonce: payment.nonce },
          "an order that we never submit was paid or canceled on-chain; if it was paid, the money must be returned",
        );
      }
    },
  };
}
