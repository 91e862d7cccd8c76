import { z } from "zod";
import type { Bought } from "../bought.ts";
import { wallet } from "../fields.ts";
import type { Verifier } from "../verifier.ts";

/** The risk score record. */
export const SCORE = z.looseObject({
  wallet,
  score: z.int().min(0).max(100),
  tier: z.string().describe("A to F, or unrated."),
  components: z.record(z.string(), z.looseObject({ points: z.int(), max: z.int() })),
  flags: z.array(z.string()),
  evidence: z.array(z.looseObject({})),
  inputs_sha256: z.string(),
});

type Score = z.infer<typeof SCORE>;

/** Returns the records of these wallets, recomputed from the facts they carry. @throws UntrustedAnswer */
export async function checkedScores(bought: Bought, wallets: readonly string[], verifier: Verifier): Promise<Score[]> {
  const parsed = z.array(SCORE).safeParse([bought.document].flat());
  if (!parsed.success) throw bought.refuse("it contains no score records.");
  const asked = wallets.map((one) => one.toLowerCase()).join();
  if (parsed.data.map((one) => one.wallet.toLowerCase()).join() !== asked)
    throw bought.refuse("its records are not for the requested wallets in the requested order.");
  const replays = await verifier.replayScores(bought.text).catch((error: Error) => {
    throw bought.refuse(`a record cannot be recomputed: ${error.message}`);
  });
  const wrong = replays.flatMap(({ differences }) => differences.map(({ path }) => path));
  if (wrong.length > 0)
    throw bought.refuse(`a record's facts give different values for ${wrong.slice(0, 5).join(", ")}.`);
  return parsed.data;
}
