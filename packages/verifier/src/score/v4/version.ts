import type { ScoreVersion } from "../version.ts";
import { SCORE_VERSION } from "./bands.ts";
import { scoreDocument } from "./document.ts";
import { parseScoreFacts } from "./parse-facts.ts";
import type { ScoreDocument } from "./record.ts";

export const SCORE_V4: ScoreVersion<ScoreDocument> = {
  version: SCORE_VERSION,
  compute: async (inputs, path) => scoreDocument(parseScoreFacts(inputs, path)),
};
