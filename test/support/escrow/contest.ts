import { randomBytes } from "node:crypto";
import { type Hex, type LocalAccount, sha256, toHex } from "viem";
import { canonical } from "../../../packages/escrow/src/canonical.ts";
import {
  boundSalt,
  type ContestConditions,
  conditionsSha256,
  contestPolicy,
} from "../../../packages/escrow/src/contest-terms.ts";
import { type Answer, post, send } from "../payments/requests.ts";
import { type EscrowScene, type Held, hold } from "./contract.ts";
import { forwarded, headersOf, JSON_TYPE, type Sent, verify } from "./delivery.ts";

/** A hold whose terms give its payer a window, and what its salt is made of. */
export interface ContestableHold extends Held {
  readonly contest: { readonly seconds: number; readonly conditions: ContestConditions; readonly salt_nonce: Hex };
}

/** A hold as a buyer signs it for an offer with a window. */
export async function holdWithWindow(
  scene: EscrowScene,
  merchant: LocalAccount,
  {
    seconds = 600,
    conditions = {},
    ...terms
  }: { readonly seconds?: number; readonly conditions?: ContestConditions; readonly maxAmount?: bigint } = {},
): Promise<ContestableHold> {
  const salt_nonce = toHex(randomBytes(32));
  const now = Number((await scene.chain.client.getBlock()).timestamp);
  const held = await hold(scene, merchant.address, {
    authorizationExpiry: now + 86_400,
    refundExpiry: now + 2 * 86_400 + seconds,
    salt: boundSalt(contestPolicy({ seconds, conditions }), BigInt(salt_nonce)),
    ...terms,
  });
  return { ...held, contest: { seconds, conditions, salt_nonce } };
}

interface Published {
  readonly forward: {
    readonly domain: object;
    readonly types: object;
    readonly primaryType: string;
  };
  readonly contest: {
    readonly signed: { readonly domain: object; readonly types: object; readonly primaryType: string };
  };
}

const published = async ({ url }: { readonly url: string }, { info }: Held) => {
  const { forward, contest } = (await send(`${url}/escrow`)).body as unknown as Published;
  const at = { verifyingContract: info.operator };
  return {
    delivery: { types: forward.types, primaryType: forward.primaryType, domain: { ...forward.domain, ...at } },
    contest: { ...contest.signed, domain: { ...contest.signed.domain, ...at } },
  };
};

/** What a merchant signs with a window, as the claim of a buyer who got it has it. */
export async function signWithWindow(
  service: { readonly url: string },
  merchant: LocalAccount,
  { held, sent }: { readonly held: ContestableHold; readonly sent: Sent },
) {
  const { status = 200, contentType: content_type = "", contentEncoding: content_encoding = "", body } = sent;
  const signed = { status, body_sha256: sha256(Buffer.from(body)), content_type, content_encoding };
  const { seconds, conditions } = held.contest;
  const message = {
    paymentId: held.id,
    status,
    bodySha256: signed.body_sha256,
    contentType: content_type,
    contentEncoding: content_encoding,
    contestSeconds: seconds,
    conditionsSha256: conditionsSha256(conditions),
  };
  const { delivery } = await published(service, held);
  return { ...signed, signature: await merchant.signTypedData({ ...delivery, message } as never) };
}

export const HAIKU: Sent = { contentType: "application/json", body: '{"haiku":"An old silent pond"}' };

/** Forwards a delivery with a window to contest. */
export async function deliverWithWindow(
  service: { readonly url: string },
  merchant: LocalAccount,
  { held, sent = HAIKU, also = {} }: { readonly held: ContestableHold; readonly sent?: Sent; readonly also?: object },
): Promise<Answer> {
  const { signature } = await signWithWindow(service, merchant, { held, sent });
  const response = forwarded({ status: sent.status ?? 200, headers: headersOf(sent), body: sent.body });
  const { id: payment_id, contest } = held;
  return verify(service, { payment_id, ...response, signature, delivery_version: 1, contest, ...also });
}

interface Contesting {
  readonly held: Held;
  readonly claim: object;
  readonly signer?: Pick<LocalAccount, "signTypedData">;
}

/** A signed contest, before it is sent. */
export async function contestBody(service: { readonly url: string }, { held, claim, signer = held.buyer }: Contesting) {
  const { contest } = await published(service, held);
  const message = { paymentId: held.id, claimSha256: sha256(Buffer.from(canonical(claim))) };
  return { payment_id: held.id, claim, signature: await signer.signTypedData({ ...contest, message } as never) };
}

export const postContest = ({ url }: { readonly url: string }, body: unknown): Promise<Answer> =>
  post(`${url}/escrow/contest`, JSON_TYPE, JSON.stringify(body));

/** Contests as the payer. */
export const contest = async (service: { readonly url: string }, held: Held, claim: object): Promise<Answer> =>
  postContest(service, await contestBody(service, { held, claim }));
