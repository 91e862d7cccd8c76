import type { Attack } from "../row.ts";
import { BLACK_HOLE } from "./black-hole.ts";
import { CALLS } from "./calls.ts";
import { BURNT, RESTORED } from "./chain-truth.ts";
import { CONTESTS } from "./contests.ts";
import { CONVICTIONS, FAR_PAGE, FORWARDED } from "./convictions.ts";
import { DECOYS } from "./decoys.ts";
import { GAS } from "./gas.ts";
import { IDENTIFIER } from "./identifier.ts";
import { MCP } from "./mcp.ts";
import { PASSES_AT_SCALE } from "./passes.ts";
import { REFUSED, WINDOW } from "./refused.ts";
import { DROPPED, FEES } from "./relay.ts";

/** Each changes the shared chain's time or answers: one after another. */
export const IN_TURN: readonly Attack[] = [
  GAS,
  FEES,
  DROPPED,
  REFUSED,
  WINDOW,
  CALLS,
  PASSES_AT_SCALE,
  BURNT,
  RESTORED,
  CONVICTIONS,
  FORWARDED,
  FAR_PAGE,
  DECOYS,
];

/** Each has a chain of its own and mostly waits: all of them beside the others. */
export const BESIDE: readonly Attack[] = [BLACK_HOLE, IDENTIFIER, MCP, CONTESTS];
