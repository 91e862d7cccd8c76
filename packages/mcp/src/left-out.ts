import { z } from "zod";
import type { KeptLogs, Policy } from "../../verifier/src/index.ts";
import { read, type Service } from "./service.ts";
import { signedBy, type Verifier } from "./verifier.ts";

/** Whether what the service shows of a wallet leaves out anything that the public log has. */
export const WALLET_LOG = z
  .object({
    state: z
      .enum(["nothing", "hidden", "incomplete", "refused", "not_checked"])
      .describe(
        "nothing: no FAIL in the public log is left out. hidden: one is, or is shown otherwise: do not rely on this answer. incomplete: the log was not read to its end. refused: the log is not genuine. not_checked: the user has set no LOG_POLICY.",
      ),
    reason: z.string(),
    hidden: z.array(z.string()),
    entries: z.int().describe("How many entries of the log the comparison rests on."),
  })
  .describe("The wallet's record beside all that the service's public log has of the wallet.");
export type WalletLog = z.infer<typeof WALLET_LOG>;

/** What was found, and the very answer that it was found about; null if the service did not give one. */
export interface Compared {
  readonly walletLog: WalletLog;
  readonly text: string | null;
}

/** @param path what of the service shows the wallet */
export type AskLeftOut = (wallet: string, path: string) => Promise<Compared>;

export const NOT_COMPARED: WalletLog = {
  state: "not_checked",
  reason: "The user has not said which log and which witnesses to trust (LOG_POLICY).",
  hidden: [],
  entries: 0,
};

export interface LeftOutParts {
  readonly service: Service;
  readonly verifier: Verifier &
    Pick<typeof import("../../verifier/src/index.ts"), "checkLeftOut" | "formatKept" | "parseKept">;
  readonly policy: Policy;
  /** New entries to read for one answer, at most. */
  readonly mostEntries: number;
  /** Where to keep what was read. */
  readonly store: TextStore;
  /** Waits before what seems to be left out is looked at again. */
  readonly pause: () => Promise<unknown>;
}

export interface TextStore {
  /** Where it is, for the user. */
  readonly place: string;
  /** Null if nothing is kept. */
  read(): Promise<string | null>;
  write(text: string): Promise<void>;
}

const READING_MS = 20_000;

/** One call reads the log at a time: the others go on from what it has read. */
export function createLeftOut({ service, verifier, policy, mostEntries, store, pause }: LeftOutParts): AskLeftOut {
  let kept: KeptLogs | null = null;
  let before: Promise<unknown> = Promise.resolve();

  async function ask(wallet: string, path: string): Promise<Compared> {
    kept ??= await readKept();
    const answer = await verifier.checkLeftOut({
      ...{ wallet, policy, kept, mostEntries, pause, timeoutMs: READING_MS, baseUrl: service.baseUrl },
      expected: await signedBy(service, verifier),
      fetchRecord: async () => (await read(service, path)).text,
    });
    const earlier = kept;
    kept = answer.kept;
    // What cannot be kept is read again at the next start, which costs time and nothing else.
    if ([...kept].some(([origin, log]) => earlier.get(origin) !== log))
      await store.write(verifier.formatKept(kept)).catch(() => undefined);
    const { record, report } = answer;
    const text = typeof record === "string" ? record : null;
    return { walletLog: { ...report, hidden: [...report.hidden] }, text };
  }

  async function readKept(): Promise<KeptLogs> {
    const text = await store.read().catch(() => null);
    try {
      return text === null ? new Map() : verifier.parseKept(text);
    } catch (cause) {
      // Not read afresh by itself: what was read before would show a fork.
      throw new Error(`${store.place}: ${(cause as Error).message}`, { cause });
    }
  }

  return (wallet, path) => {
    const compared = before.then(() => ask(wallet, path));
    before = compared.catch(() => undefined);
    return compared;
  };
}
