import { quote } from "../refusal.ts";
import { type Replay, replayScores } from "../score/replay.ts";
import { FLAG, readArguments, readSource } from "./arguments.ts";

const USAGE = `Recomputes a risk score from the facts in its record, offline.

  agent-payment-trust-verifier score <file | URL | -> [--json]

The source is the JSON of a score record or of a batch. This does not check that the facts are true: each one names the
certificate or transaction to look at.

Exit codes: 0 the facts give this record; 1 they give a different record; 2 usage error, or not a score record.`;

const MAX_SHOWN = 20;

/**
 * The subcommand `score`.
 * @throws InputError for wrong usage, or for a source that cannot be read or is not a score record
 */
export async function checkScore(args: readonly string[]): Promise<0 | 1> {
  const { source, json } = readArguments(args, USAGE, { json: FLAG });
  const replays = await replayScores(await readSource(source));
  console.log(json ? JSON.stringify(replays.map(summary), null, 2) : replays.map(render).join("\n"));
  return replays.every(({ same }) => same) ? 0 : 1;
}

const summary = ({ same, differences, computed: { wallet, score, tier, inputs_sha256 } }: Replay) => ({
  same,
  wallet,
  score,
  tier,
  inputs_sha256,
  differences,
});

function render({ same, differences, computed }: Replay): string {
  const { wallet, score, tier, as_of, as_of_block, components, inputs_sha256 } = computed;
  const shown = differences.slice(0, MAX_SHOWN).map(renderDifference);
  const hidden = differences.length - shown.length;
  return [
    `${same ? "same" : "DIFFERS"}: the facts give ${wallet} ${score}, tier ${tier}, on ${as_of} at block ${as_of_block}`,
    ...Object.entries(components).map(
      ([name, { points, max }]) => `  ${String(points).padStart(3)} of ${max}  ${name}`,
    ),
    `  inputs_sha256  ${inputs_sha256}`,
    ...shown,
    ...(hidden > 0 ? [`  and ${hidden} more differences`] : []),
  ].join("\n");
}

const renderDifference = ({ path, stated, computed }: Replay["differences"][number]): string =>
  `  ${quote(path)}: the record has ${quote(stated)}, its facts give ${quote(computed)}`;
