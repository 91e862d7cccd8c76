import { createHash, randomUUID } from "node:crypto";
import { link, mkdir, open, readFile, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import canonicalize from "canonicalize";
import { z } from "zod";

/** Two calls with the same of all this ask for the same thing. */
export interface PurchaseKey {
  /** The service's origin. */
  readonly service: string;
  readonly path: string;
  readonly body: unknown;
  readonly wallet: string;
}

const PENDING = z.object({
  /** What carries the payment. Anyone who has it can make the wallet pay this service once, and nobody else. */
  headers: z.record(z.string(), z.string()),
  amount: z.string().regex(/^[1-9]\d{0,18}$/),
  payTo: z.string(),
  network: z.string(),
  maxTimeoutSeconds: z.number(),
  signedAt: z.string(),
});

/** A payment that was signed and may have been sent, without a final answer to it. `amount` in atomic units. */
export type PendingPayment = z.infer<typeof PENDING>;

/** Payments cannot be kept or read, so none is signed or sent. The message is written for the agent. */
class CannotKeep extends Error {}

/** Keeps payments on disk until they are answered, for any number of programs at once. */
export interface PendingPayments {
  readonly find: (key: PurchaseKey) => Promise<PendingPayment | null>;
  /** The payment that is kept, or else the one that `sign` makes: on disk once this resolves. @throws CannotKeep */
  readonly keep: (key: PurchaseKey, sign: () => Promise<PendingPayment>) => Promise<PendingPayment>;
  /** Forgets exactly this payment. */
  readonly forget: (key: PurchaseKey, payment: PendingPayment) => Promise<void>;
}

/** Holding a lock takes milliseconds; its holder was killed if it is older. */
const STALE_AFTER_MS = 10_000;
const ASK_AGAIN_MS = 20;

/** In a folder that only its owner can read. */
export function keptIn(folder: string): PendingPayments {
  const fileOf = (key: PurchaseKey) =>
    join(
      folder,
      `${createHash("sha256")
        .update(canonicalize(key) as string)
        .digest("hex")}.json`,
    );
  const find = (key: PurchaseKey) => explained(folder, () => readPending(fileOf(key)));
  return {
    find,
    keep: (key, sign) =>
      locked(folder, fileOf(key), async (file) => {
        const kept = await explained(folder, () => readPending(file));
        if (kept !== null) return kept;
        const payment = await sign();
        return explained(folder, () => write(folder, file, payment));
      }),
    forget: (key, payment) =>
      locked(folder, fileOf(key), async (file) => {
        // Another program may have bought the same thing once more.
        const kept = await readPending(file);
        if (canonicalize(kept) !== canonicalize(payment)) return;
        await rm(file, { force: true });
        await syncFolder(folder);
      }),
  };
}

async function readPending(file: string): Promise<PendingPayment | null> {
  const text = await readFile(file, "utf8").catch(absent);
  return text === null ? null : PENDING.parse(JSON.parse(text));
}

/** Never over another payment, whatever became of the lock: then that one is the payment. */
async function write(folder: string, file: string, payment: PendingPayment): Promise<PendingPayment> {
  const draft = `${file}.${randomUUID()}`;
  const handle = await open(draft, "wx", 0o600);
  try {
    await handle.writeFile(JSON.stringify(payment));
    await handle.sync();
  } finally {
    await handle.close();
  }
  await link(draft, file)
    .catch(unlessOneOf("EEXIST"))
    .finally(() => rm(draft, { force: true }));
  await syncFolder(folder);
  return (await readPending(file)) ?? payment;
}

/** A name in a folder is on disk once the folder is. Windows neither needs nor allows it. */
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
  if (held !== null && Date.now() - held.mtimeMs > STALE_AFTER_MS) await rm(lock, { force: true });
  return false;
}

/** Null for these errors. */
const unlessOneOf =
  (...codes: readonly string[]) =>
  (error: NodeJS.ErrnoException): null => {
    if (codes.includes(error.code ?? "")) return null;
    throw error;
  };

const absent = unlessOneOf("ENOENT");

const explained = <T>(folder: string, work: () => Promise<T>): Promise<T> =>
  work().catch((cause: Error) => {
    throw new CannotKeep(
      `Payments are kept in ${folder} until they are answered, and that fails: ${cause.message}. Nothing was sent. The user can make the folder writable, or name another one with XDG_STATE_HOME.`,
      { cause },
    );
  });
