import type { Address, LocalAccount } from "viem";
import { type Answer, challengeOf, post, send, v2 } from "../../../test/support/payments/requests.ts";
import type { Signed } from "../../../test/support/payments/signing.ts";
import type { Ground } from "../ground.ts";
import { type Attack, type Goal, oneOf } from "../row.ts";
import { openService, type Service } from "../service.ts";

const ENTRY = 500_000n;
const BAIT = 50_000_000n;
const PURSE = 100_000_000n;
type Product = "scam" | "recipient";

interface Session {
  readonly product: Product;
  readonly payer: LocalAccount;
  readonly entry: Signed;
  /** The door that the start names, and the one that everybody knows. */
  readonly door: string;
  readonly wallet: string;
}

interface Bait {
  readonly to: Address;
  readonly value: bigint;
}

/** A session whose entry is paid, of a new victim unless one is given. */
async function start(service: Service, product: Product, payer?: LocalAccount): Promise<Session> {
  const victim = payer ?? (await service.newPayer(PURSE));
  const entry = await service.sign(victim, { value: ENTRY });
  const { status, text, body } = await service.pay(entry, `/test/${product}/start`);
  if (status !== 200) throw new Error(`the session was not opened: ${status} ${text.slice(0, 200)}`);
  const wallet = `${service.url}/test/${product}/attempt?wallet=${victim.address.toLowerCase()}`;
  return { product, payer: victim, entry, door: (body.next as { url: string }).url, wallet };
}

/** The bait, as two unpaid calls at a door show it. */
async function baitAt(service: Service, door: string): Promise<Bait> {
  for (let asked = 0; asked < 3; asked++) {
    const answer = await post(door);
    if (answer.status !== 402) continue;
    const [{ payTo = "", amount = "" } = {}] = challengeOf(answer).accepts;
    const bait = { to: payTo.toLowerCase() as Address, value: BigInt(amount) };
    if (bait.to !== service.payTo || bait.value === BAIT) return bait;
  }
  throw new Error("no bait was shown");
}

/** The victim buys something from a shop at the bait's terms; the shop hands the payment in at a door. */
async function handIn(service: Service, { payer }: Session, given: Bait & { readonly at: string }): Promise<Answer> {
  const { to, value, at } = given;
  return post(at, v2(await service.sign(payer, { to, value })));
}

const failed = ({ status, body }: Answer): "yes" | "no" => (status === 200 && body.verdict === "fail" ? "yes" : "no");
const row = (id: string, what: string, goal: Goal = oneOf("no")) => ({ id, line: 12, what, goal });

/** A shop makes its customer fail a test that the customer has a session of. */
export const CONVICTIONS: Attack = {
  rows: [
    row("fail-recipient", "FAIL by the wallet's door, recipient, the victim uses its token"),
    row("fail-scam", "FAIL by the wallet's door, scam, the victim uses its token"),
    row("fail-idle", "FAIL of an abandoned session while the victim uses another one's token"),
    row("fail-replayed", "FAIL with a token that a replay of the entry told"),
    row("fail-unused", "FAIL before the token is used: the record names the door", oneOf("yes", "no FAIL")),
    row("fail-relayed", "the FAIL of a victim whose payments a shop relays claims more than was signed"),
  ],
  run: (ground) => served(ground, ofSessions),
};

async function served<T>(ground: Ground, work: (service: Service) => Promise<T>): Promise<T> {
  const service = await openService(ground);
  try {
    return await work(service);
  } finally {
    await service.stop();
  }
}

async function ofSessions(service: Service) {
  return {
    "fail-recipient": await byWallet(service, "recipient"),
    "fail-scam": await byWallet(service, "scam"),
    "fail-idle": await byIdleSession(service),
    "fail-replayed": await byReplay(service),
    "fail-unused": await beforeToken(service),
    "fail-relayed": await byRelay(service),
  };
}

async function byWallet(service: Service, product: Product) {
  const session = await start(service, product);
  await post(session.door);
  const bait = await baitAt(service, session.wallet);
  return failed(await handIn(service, session, { ...bait, at: session.wallet }));
}

async function byIdleSession(service: Service) {
  const used = await start(service, "scam");
  await post(used.door);
  const idle = await start(service, "recipient", used.payer);
  const bait = await baitAt(service, idle.wallet);
  return failed(await handIn(service, idle, { ...bait, at: idle.wallet }));
}

/** A settled payment's header can be rebuilt from the chain. */
async function byReplay(service: Service) {
  const session = await start(service, "scam");
  await post(session.door);
  const { body } = await service.pay(session.entry, "/test/scam/start");
  const { url } = body.next as { url: string };
  const bait = await baitAt(service, url);
  return failed(await handIn(service, session, { ...bait, at: url }));
}

async function beforeToken(service: Service) {
  const session = await start(service, "recipient");
  const bait = await baitAt(service, session.wallet);
  if (failed(await handIn(service, session, { ...bait, at: session.wallet })) === "no") return "no FAIL";
  return JSON.stringify(await recordOf(service, session)).includes("wallet_address") ? "yes" : "not told";
}

async function byRelay(service: Service) {
  const session = await start(service, "recipient");
  const bait = await baitAt(service, session.door);
  const answer = await handIn(service, session, { ...bait, at: session.door });
  if (failed(answer) === "no") return "no FAIL";
  const { id } = await recordOf(service, session);
  const { text } = await send(`${service.url}/cert/${id}`, { headers: { accept: "text/html" } });
  return /never been given|never paid|strange/i.test(`${answer.text} ${text}`) ? "yes" : "no";
}

async function recordOf(service: Service, { payer }: Session): Promise<{ id: string }> {
  const { rows } = await service.owner.query<{ id: string }>("SELECT * FROM certificate WHERE wallet = $1", [
    Buffer.from(payer.address.slice(2), "hex"),
  ]);
  if (rows[0] === undefined) throw new Error("there is no certificate");
  return rows[0];
}

/** A shop quotes the suite's price with an hour's window and forwards the payment of a certified customer. */
export const FORWARDED: Attack = {
  rows: [
    {
      id: "suite",
      line: 13,
      what: "a payment forwarded to the suite changes `verified` or the level",
      goal: oneOf("no"),
    },
  ],
  run: (ground) =>
    served(ground, async (service) => {
      const payer = await service.newPayer();
      await service.pay(await service.sign(payer), "/test/basic");
      const standing = async () => {
        const { verified, reasons, level } = (await send(`${service.url}/verify?wallet=${payer.address}`)).body;
        return JSON.stringify({ verified, reasons, level });
      };
      const before = await standing();
      if (!before.includes('"verified":true')) throw new Error(`the customer is not verified: ${before}`);
      const hour = await service.sign(payer, { value: 750_000n, validBefore: service.base.unixNow() + 3_600n });
      const { status } = await service.pay(hour, "/test/suite");
      if (status !== 200) throw new Error(`the suite answered ${status}`);
      return { suite: (await standing()) === before ? "no" : "yes" };
    }),
};

const FAR = 2n ** 43n;

/** A FAIL that was recorded while `validBefore` had no bound. */
export const FAR_PAGE: Attack = {
  rows: [{ id: "far-page", line: 14, what: "status of the page of a FAIL with validBefore 2^43", goal: oneOf(200) }],
  run: (ground) =>
    served(ground, async (service) => {
      const session = await start(service, "scam");
      const bait = await baitAt(service, session.door);
      const signed = await service.sign(session.payer, bait);
      const verdict = failed(await post(session.door, v2(signed)));
      if (verdict !== "yes") throw new Error("the bait was no FAIL");
      await service.owner.query(
        `INSERT INTO certificate SELECT (jsonb_populate_record(c, jsonb_build_object('id', $1::text,
           'detected', replace(c.detected::text, $2, $3)::jsonb))).* FROM certificate c WHERE result = 'fail'`,
        ["00000000000000fa", String(signed.authorization.validBefore), String(FAR)],
      );
      const { status } = await send(`${service.url}/cert/00000000000000fa`, { headers: { accept: "text/html" } });
      return { "far-page": status };
    }),
};
