import type { Answer } from "../../api/payments/step-types.ts";
import type { Transaction } from "./batch.ts";
import type { Answered } from "./promises.ts";
import type { JournalRow } from "./world.ts";

type About = Pick<Answered, "answer" | "sent" | "known">;

/**
 * Returns an answer in short form, with its sender and whether it is about a payment that the header does not carry.
 */
export function inShort({ answer, sent, known }: About): string {
  const other = known !== null && known.authorization !== sent.authorization ? ", under the same identifier" : "";
  return `${sent.by}: ${answerInShort(answer)}${other}`;
}

function answerInShort(answer: Answer): string {
  switch (answer.type) {
    case "wait":
      return `wait, ${answer.because}${answer.charged ? ", charged" : ""}`;
    case "result":
      return answer.replay ? "replay" : "result";
    default:
      return answer.type;
  }
}

export const rowInShort = ({ state, reason, final }: JournalRow): string =>
  ["row", state, reason, final && "final"].filter(Boolean).join(" ");

export const batchInShort = ({ calls, stored, failed }: Transaction): string =>
  `batch of ${calls.length}, ${stored}${failed.length > 0 ? `, ${failed.length} failed` : ""}`;

/** Returns the payment whose result its payer gets, as a bit. */
export const deliveredBy = ({ answer, sent, known }: About): number =>
  answer.type === "result" && sent.by === "payer" ? 1 << (known?.authorization ?? sent.authorization) : 0;
