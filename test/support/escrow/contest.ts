import { randomBytes } from "node:crypto";
import { type Hex, type LocalAccount, sha256, toHex } from "viem";
import { connect } from "../../../api/platform/db/connection.ts";
import { canonical } from "../../../packages/escrow/src/canonical.ts";
import {
  boundSalt,
  type ContestConditions,
  conditionsSha256,
  contestPolicy,
} from "../../../packages/escrow/src/contest-terms.ts";
import { startTestChain, type TestChain } from "../chain/chain.ts";
import { type LocalServer, serveHttp } from "../http-server.ts";
import { type Answer, post, send } from "../payments/requests.ts";
import { startService, type TestService } from "../service/service.ts";
import { openOperator } from "./auth-capture.ts";
import { deployEscrow, END_TURNS, type EscrowScene, type Held, hold, processOf } from "./contract.ts";
import { forwarded, headersOf, JSON_TYPE, type Sent, verify } from "./delivery.ts";

/** A hold whose terms give its payer a window, with the inputs of its salt. */
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
  }: {
    readonly seconds?: number;
    readonly conditions?: ContestConditions;
    readonly maxAmount?: bigint;
    readonly by?: LocalAccount;
  } = {},
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

/** A delivery with a window and the merchant's signature, as its buyer claims it. */
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

/** The end of the window that a delivery's response names, in Unix seconds. */
export const untilOf = ({ contest }: Answer["body"]): number => Date.parse((contest as { until: string }).until) / 1000;

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

export type Custody = "escrow" | "operator";

/** A service whose jobs run only when the test runs them, both contracts, and a public site that it may fetch from. */
export interface ContestScene {
  readonly chain: TestChain;
  readonly service: TestService;
  readonly at: Readonly<Record<Custody, EscrowScene>>;
  /** The site's pages by path, with status 200. It never responds at /silent and returns 404 elsewhere. */
  readonly pages: Map<string, string>;
  readonly site: LocalServer;
  /** Runs one pass over everything, as if due, in another process of the same installation. */
  readonly pass: () => Promise<void>;
  /** The time of the chain's head. */
  readonly now: () => Promise<number>;
  /** Mines a block with this time. */
  readonly mineAt: (time: number) => Promise<void>;
  readonly stop: () => Promise<void>;
}

export async function startContestScene(): Promise<ContestScene> {
  const chain = await startTestChain();
  const [escrow, operator] = [await deployEscrow(chain), await openOperator(chain)];
  const pages = new Map<string, string>();
  const site = await serveHttp(({ url = "" }, response) => {
    if (url === "/silent") return;
    const page = pages.get(url);
    response.writeHead(page === undefined ? 404 : 200, { "content-type": "text/plain" }).end(page ?? "none");
  });
  const config = { escrowAddresses: [escrow.address, operator.address], arbiterAllowedOrigins: [site.url] };
  const service = await startService({ chain, jobs: false, config });
  const { escrow: jobs } = await processOf(service);
  const owner = connect(service.database.ownerUrl, 1);
  return {
    chain,
    service,
    at: { escrow: { chain, escrow }, operator: { chain, escrow: operator } },
    pages,
    site,
    async pass() {
      await owner.query(END_TURNS);
      await owner.query("UPDATE escrow_contest SET next_attempt_at = '-infinity' WHERE is_open");
      await jobs.answerContests();
      await jobs.settleDue();
      await jobs.idle();
    },
    now: async () => Number((await chain.client.getBlock()).timestamp),
    async mineAt(time) {
      await chain.client.setNextBlockTimestamp({ timestamp: BigInt(time) });
      await chain.client.mine({ blocks: 1 });
    },
    async stop() {
      await service.stop();
      await owner.end();
      site.stop();
      await chain.stop();
    },
  };
}
