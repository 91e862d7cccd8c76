import { createHash, randomUUID } from "node:crypto";
import { link, mkdir, open, readdir, readFile, rename, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import canonicalize from "canonicalize";
import { z } from "zod";

/** The key of a purchase: two calls with the same key request the same thing. */
export interface PurchaseKey {
  /** The service's origin. */
  readonly service: string;
  readonly path: string;
  readonly body: unknown;
  readonly wallet: string;
}

const PENDING = z.object({
  /** The header with the payment. Its holder can make the wallet pay this service once, and only this service. */
  headers: z.record(z.string(), z.string()),
  amount: z.string().regex(/^[1-9]\d{0,18}$/),
  payTo: z.string(),
  network: z.string(),
  maxTimeoutSeconds: z.number(),
  signedAt: z.string(),
  /** ISO 8601, when the purchase arrived. From then on only calls that began earlier share it. */
  answeredAt: z.iso.datetime().exactOptional(),
});

/** A payment that was signed, and may have been sent. `amount` in atomic units. */
export type PendingPayment = z.infer<typeof PENDING>;

/** Thrown if payments cannot be stored or read, so none is signed or sent. The message is for the agent. */
class CannotKeep extends Error {}

/** Thrown for a file that may contain a payment that can still be charged. */
class Unreadable extends Error {
  constructor(file: string, options: ErrorOptions) {
    super(
      `${file} may be a payment that can still be charged, and cannot be read. Nothing was signed or sent. Once the tool my_purchases or the chain shows that nothing is open, the user can remove it.`,
      options,
    );
  }
}

/** One call for a purchase. */
export interface Call {
  readonly key: PurchaseKey;
  /** In milliseconds since 1970. */
  readonly began: number;
}

/** Stores payments on disk until their purchase has arrived or they are over, for any number of concurrent programs. */
export interface PendingPayments {
  /** Returns the payment that this call shares; null if it has to sign one. */
  readonly find: (call: Call) => Promise<PendingPayment | null>;
  /**
   * Returns the payment that the call shares, or else the one that `sign` creates: on disk once this resolves. It
   * replaces `over`, which can never be charged. @throws CannotKeep
   */
  readonly keep: (
    call: Call,
    over: PendingPayment | null,
    sign: () => Promise<PendingPayment>,
  ) => Promise<PendingPayment>;
  /** Records that the purchase of exactly this payment has arrived: calls that begin later buy again. */
  readonly answered: (key: PurchaseKey, payment: PendingPayment, at: Date) => Promise<void>;
  /** Returns the file of a payment, for the user. */
  readonly fileOf: (key: PurchaseKey) => string;
}

/** A lock is held for milliseconds; if it is older, its holder was killed. */
const STALE_AFTER_MS = 10_000;
const ASK_AGAIN_MS = 20;
/** Longer than the duration of any call that began before a response. */
const SHARED_FOR_MS = 600_000;

/** Stores payments in a folder that only its owner can read. */
export function keptIn(folder: string): PendingPayments {
  const fileOf = (key: PurchaseKey) =>
    join(
      folder,
      `${createHash("sha256")
        .update(canonicalize(key) as string)
        .digest("hex")}.json`,
    );
  return {
    find: ({ key, began }) =>
      explained(folder, async () => {
        const kept = await readPending(fileOf(key));
        return kept !== null && isSharedBy(began, kept) ? kept : null;
      }),
    keep: async ({ key, began }, over, sign) => {
      // Cleaning up must not prevent a purchase.
      await dropAnswered(folder).catch(() => undefined);
      return locked(folder, fileOf(key), async (file) => {
        const kept = await explained(folder, () => readPending(file));
        if (kept !== null && isSharedBy(began, kept) && !isSame(kept, over)) return kept;
        const payment = await sign();
        return explained(folder, () => write(folder, file, { payment, inPlaceOf: kept }));
      });
    },
    answered: (key, payment, at) =>
      locked(folder, fileOf(key), async (file) => {
        // Another program may have bought the same thing again.
        if (!isSame(await readPending(file), payment)) return;
        await write(folder, file, {
          payment: { ...payment, answeredAt: at.toISOString() },
          inPlaceOf: payment,
        });
      }),
    fileOf,
  };
}

/** A response time later than any call comes from a clock that was set back since, so the payment is long over. */
function isSharedBy(began: number, { answeredAt }: PendingPayment): boolean {
  if (answeredAt === undefined) return true;
  const at = Date.parse(answeredAt);
  return at > began && at <= Date.now() + SHARED_FOR_MS;
}

/** Each payment has a unique nonce. */
const isSame = (one: PendingPayment | null, other: PendingPayment | null): boolean =>
  canonicalize(one?.headers) === canonicalize(other?.headers);

async function readPending(file: string): Promise<PendingPayment | null> {
  const text = await readFile(file, "utf8").catch(absent);
  if (text === null) return null;
  try {
    return PENDING.parse(JSON.parse(text));
  } catch (cause) {
    throw new Unreadable(file, { cause });
  }
}

interface Written {
  readonly payment: PendingPayment;
  readonly inPlaceOf: PendingPayment | null;
}

/** Never replaces a third payment, even if the lock was lost: that one is then the payment. */
async function write(folder: string, file: string, { payment, inPlaceOf }: Written): Promise<PendingPayment> {
  const draft = `${file}.${randomUUID()}`;
  const handle = await open(draft, "wx", 0o600);
  try {
    await handle.writeFile(JSON.stringify(payment));
    await handle.sync();
  } finally {
    await handle.close();
  }
  if (inPlaceOf !== null) await takeAway(file, inPlaceOf);
  await link(draft, file)
    .catch(unlessOneOf("EEXIST"))
    .finally(() => rm(draft, { force: true }));
  await syncFolder(folder);
  return (await readPending(file)) ?? payment;
}

/** Removes exactly this payment: one that has replaced it meanwhile is put back. */
async function takeAway(file: string, payment: PendingPayment): Promise<void> {
  const aside = `${file}.${randomUUID()}`;
  await rename(file, aside).catch(absent);
  const found = await readPending(aside);
  if (found === null) return;
  if (!isSame(found, payment)) await link(aside, file).catch(unlessOneOf("EEXIST"));
  await rm(aside);
}

/** Removes payments that were answered before any call that is still running began. */
async function dropAnswered(folder: string): Promise<void> {
  for (const name of await readdir(folder)) {
    if (!name.endsWith(".json")) continue;
    const kept = await readPending(join(folder, name)).catch(() => null);
    if (kept !== null && !isSharedBy(Date.now() - SHARED_FOR_MS, kept)) await takeAway(join(folder, name), kept);
  }
}

/** A name in a folder is on disk once the folder is synced. Windows does not need or allow this. */
async function syncFolder(folder: string): Promise<void> {
  const handle = await open(folder, "r").catch(unlessOneOf("EISDIR", "EPERM"));
  if (handle !== null) await handle.sync().finally(() => handle.close());
}

async function locked<T>(folder: string, file: string, work: (file: string) => Promise<T>): Promise<T> {
  const lock = `${file}.lock`;
  await explained(folder, async () => {
    await mkdir(folder, { recursive: true, mode: 0o700 });
    while (!(await taken(lock))) await sleep(ASK_AGAIN_MS);
  });
  return work(file).finally(() => rm(lock, { force: true }));
}

async function taken(lock: string): Promise<boolean> {
  const handle = await open(lock, "wx", 0o600).catch(unlessOneOf("EEXIST"));
  if (handle !== null) {
    await handle.close();
    return true;
  }
  const held = await stat(lock).catch(absent);
  // In either direction, because the clock may have been set back since.
  if (held !== null && Math.abs(Date.now() - held.mtimeMs) > STALE_AFTER_MS) await rm(lock, { force: true });
  return false;
}

/** Returns null for these errors. */
const unlessOneOf =
  (...codes: readonly string[]) =>
  (error: NodeJS.ErrnoException): null => {
    if (codes.includes(error.code ?? "")) return null;
    throw error;
  };

const absent = unlessOneOf("ENOENT");

const explained = <T>(folder: string, work: () => Promise<T>): Promise<T> =>
  work().catch((cause: Error) => {
    // Another folder would hide the payment in this one.
    if (cause instanceof Unreadable) throw cause;
    throw new CannotKeep(
      `Payments are stored in ${folder} until they are over, but that fails: ${cause.message}. Nothing was sent. The user can make the folder writable, or name another one with XDG_STATE_HOME.`,
      { cause },
    );
  });
