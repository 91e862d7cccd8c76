import { join } from "node:path";
import { startProgram, stopProgram } from "../programs.ts";
import { judge } from "./goals.ts";
import { INDEXER_SETTINGS, runIndexer } from "./indexer.ts";
import { withStage } from "./stage.ts";
import { writeCsv } from "./transfers-csv.ts";

// How long an index takes to make a preloaded history its own: what its first start takes longer than the next one.

const MOST_SECONDS = 5;

/** @param transfers of the history. Returns whether the goal was met. */
export const runTakeover = (transfers: number): Promise<boolean> =>
  withStage({ transfers, authorisedEvery: 1 }, async ({ env, chain, folder }) => {
    const file = join(folder, "transfers.csv");
    await writeCsv(chain, file);
    const scope = { INDEX_SCOPE: "selective", INDEX_HISTORY: "history" };
    const settings = { ...INDEXER_SETTINGS, ...env, ...scope };
    await stopProgram(await startProgram("scripts/index-preload.ts", settings, { ready: /^history: /, args: [file] }));
    const first = await runIndexer({ ...env, ...scope });
    const again = await runIndexer({ ...env, ...scope });
    console.log(
      `ready after ${first.seconds.toFixed(1)} s, and after ${again.seconds.toFixed(1)} s when started again`,
    );
    return judge([
      { name: "seconds of the take-over", value: first.seconds - again.seconds, limit: MOST_SECONDS, isFloor: false },
    ]);
  });
