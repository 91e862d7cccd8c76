import type { ScoreDocument as ScoreDocumentV1 } from "./v1/record.ts";
import { SCORE_V1 } from "./v1/version.ts";
import type { ScoreDocument as ScoreDocumentV2 } from "./v2/record.ts";
import { SCORE_V2 } from "./v2/version.ts";
import type { ScoreDocument as ScoreDocumentV3 } from "./v3/record.ts";
import { SCORE_V3 } from "./v3/version.ts";
import type { ScoreDocument as ScoreDocumentV4 } from "./v4/record.ts";
import { SCORE_V4 } from "./v4/version.ts";
import type { ScoreVersion } from "./version.ts";

/** A record of any version. */
export type AnyScoreDocument = ScoreDocumentV1 | ScoreDocumentV2 | ScoreDocumentV3 | ScoreDocumentV4;

/** The versions that records can name, oldest first. A new one is a folder beside `v1` and a line here. */
export const SCORE_VERSIONS: readonly ScoreVersion<AnyScoreDocument>[] = [SCORE_V1, SCORE_V2, SCORE_V3, SCORE_V4];
