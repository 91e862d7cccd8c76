import { CAP_LIMITS, MAX_POINTS, TIERS } from "../../packages/verifier/src/score/bands.ts";
import { html, type Markup } from "../platform/page/html.ts";
import { CAP_NAMES, COMPONENT_NAMES } from "./score-names.ts";

const ROW = 38;
const TIER_TOP = 26;
const TIER_HEIGHT = 40;
const ROWS_TOP = TIER_TOP + TIER_HEIGHT + 44;

/** Each tier with its range of scores, lowest first; `to` is where the next one begins. */
const spans = TIERS.toReversed().map(({ tier, from }, index, all) => ({
  tier,
  from,
  to: all[index + 1]?.from ?? 100,
}));

/** The components one after another: together they add up to 100. */
const steps = Object.entries(MAX_POINTS).map(([name, points], index, all) => ({
  name,
  points,
  from: all.slice(0, index).reduce((sum, [, before]) => sum + before, 0),
}));

/**
 * The score on one scale from 0 to 100: the tiers, what each component can add, and how high each cap lets a score go.
 * Widths are percentages: the picture stretches with the page while its text keeps its size.
 */
export function scorePicture(): Markup {
  const caps = Object.entries(CAP_LIMITS).filter(([, limit]) => limit > 0);
  const capsTop = ROWS_TOP + steps.length * ROW + 40;
  return html`<svg role="img" aria-labelledby="bands-title bands-desc" width="100%" height="${capsTop + caps.length * ROW}" font-size="14">
<title id="bands-title">Tiers, components and caps on a scale from 0 to 100</title>
<desc id="bands-desc">Tiers: ${spans.map(({ tier, from }) => `${tier} from ${from}`).join(", ")}. Components: ${steps.map(({ name, points }) => `${COMPONENT_NAMES[name as keyof typeof MAX_POINTS]} ${points}`).join(", ")}. The tables below list every figure.</desc>
${spans.map(
  ({ tier, from, to }, index) =>
    html`<rect x="${from}%" width="${to - from}%" y="${TIER_TOP}" height="${TIER_HEIGHT}" fill="var(--accent)" fill-opacity="${(0.08 + index * 0.14).toFixed(2)}" stroke="var(--line)"/><text x="${(from + to) / 2}%" y="${TIER_TOP + 26}" text-anchor="middle" font-weight="650" fill="var(--ink)">${tier}</text><text x="${from}%" y="${TIER_TOP - 8}" text-anchor="${from === 0 ? "start" : "middle"}" font-size="12" fill="var(--soft)">${from}</text>`,
)}
${heading("What earns points", ROWS_TOP)}
${steps.map(({ name, from, points }, index) =>
  bar({
    label: `${COMPONENT_NAMES[name as keyof typeof MAX_POINTS]}: ${points}`,
    y: ROWS_TOP + index * ROW,
    from,
    width: points,
    colour: "var(--accent)",
  }),
)}
${heading("Highest score under each cap", capsTop)}
${caps.map(([name, limit], index) =>
  bar({
    label: `${CAP_NAMES[name as keyof typeof CAP_LIMITS]}: ${limit}`,
    y: capsTop + index * ROW,
    from: 0,
    width: limit,
    colour: "var(--gold)",
  }),
)}
</svg>`;
}

const heading = (text: string, y: number): Markup =>
  html`<text x="0" y="${y - 16}" font-weight="650" fill="var(--ink)">${text}</text>`;

interface Row {
  readonly label: string;
  readonly y: number;
  readonly from: number;
  readonly width: number;
  readonly colour: string;
}

const bar = ({ label, y, from, width, colour }: Row): Markup =>
  html`<text x="0" y="${y + 12}" fill="var(--soft)">${label}</text><rect x="0" width="100%" y="${y + 19}" height="7" fill="var(--well)"/><rect x="${from}%" width="${width}%" y="${y + 19}" height="7" fill="${colour}"/>`;
