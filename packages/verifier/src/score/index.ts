import type { ScoreDocument } from "./v1/record.ts";
import { SCORE_V1 } from "./v1/version.ts";
import type { ScoreVersion } from "./version.ts";

/** The versions that records can name, oldest first. A new one is a folder beside `v1` and a line here. */
export const SCORE_VERSIONS: readonly ScoreVersion<ScoreDocument>[] = [SCORE_V1];
