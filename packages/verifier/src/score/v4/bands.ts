// score_version 4 as data: what the function computes with, and what documentation and pictures are drawn from.

// As in version 3, which never changes, but for its number.
export * from "../v3/bands.ts";

export const SCORE_VERSION = 4;
