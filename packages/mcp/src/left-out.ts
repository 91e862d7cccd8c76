import { z } from "zod";
import { checkLeftOut, formatKept, type KeptLogs, type Policy, parseKept } from "../../verifier/src/index.ts";
import { read, type Service, signedBy } from "./service.ts";

/** Whether the service's statement about a wallet omits anything in the public log. */
export const WALLET_LOG = z
  .object({
    state: z
      .enum(["nothing", "hidden", "incomplete", "refused", "not_checked"])
      .describe(
        "nothing: no FAIL in the public log is omitted. hidden: one is omitted, or shown differently; do not rely on this answer. incomplete: the log was not read to its end. refused: the log is not genuine. not_checked: the user has set no LOG_POLICY.",
      ),
    reason: z.string(),
    hidden: z.array(z.string()),
    entries: z.int().describe("The number of log entries that were compared."),
  })
  .describe("The wallet's record compared with all its entries in the service's public log.");
export type WalletLog = z.infer<typeof WALLET_LOG>;

/** The result, and the exact response that was compared; null if the service sent none. */
export interface Compared {
  readonly walletLog: WalletLog;
  readonly text: string | null;
}

/** @param path the service's path that shows the wallet */
export type AskLeftOut = (wallet: string, path: string) => Promise<Compared>;

export const NOT_COMPARED: WalletLog = {
  state: "not_checked",
  reason: "The user has not set which log and witnesses to trust (LOG_POLICY).",
  hidden: [],
  entries: 0,
};

export interface LeftOutParts {
  readonly service: Service;
  readonly policy: Policy;
  /** The maximum number of new entries to read per answer. */
  readonly mostEntries: number;
  /** Stores the entries that were read. */
  readonly store: TextStore;
  /** Waits before an apparent omission is checked again. */
  readonly pause: () => Promise<unknown>;
}

export interface TextStore {
  /** Its location, for the user. */
  readonly place: string;
  /** Null if nothing is stored. */
  read(): Promise<string | null>;
  write(text: string): Promise<void>;
}

const READING_MS = 20_000;

/** One call reads the log at a time; the others continue from its result. */
export function createLeftOut({ service, policy, mostEntries, store, pause }: LeftOutParts): AskLeftOut {
  let kept: KeptLogs | null = null;
  let before: Promise<unknown> = Promise.resolve();

  async function ask(wallet: string, path: string): Promise<Compared> {
    kept ??= await readKept();
    const answer = await checkLeftOut({
      ...{ wallet, policy, kept, mostEntries, pause, timeoutMs: READING_MS, baseUrl: service.baseUrl },
      expected: await signedBy(service),
      fetchRecord: async () => (await read(service, path)).text,
    });
    const earlier = kept;
    kept = answer.kept;
    // If this cannot be stored, it is read again at the next start, which only costs time.
    if ([...kept].some(([origin, log]) => earlier.get(origin) !== log))
      await store.write(formatKept(kept)).catch(() => undefined);
    const { record, report } = answer;
    const text = typeof record === "string" ? record : null;
    return { walletLog: { ...report, hidden: [...report.hidden] }, text };
  }

  async function readKept(): Promise<KeptLogs> {
    const text = await store.read().catch(() => null);
    try {
      return text === null ? new Map() : parseKept(text);
    } catch (cause) {
      // It is not discarded automatically, because the earlier entries would show a fork.
      throw new Error(`${store.place}: ${(cause as Error).message}`, { cause });
    }
  }

  return (wallet, path) => {
    const compared = before.then(() => ask(wallet, path));
    before = compared.catch(() => undefined);
    return compared;
  };
}
