import { counted, html, type Markup } from "../platform/page/html.ts";

export interface Bar {
  /** `YYYY-MM-DD`. */
  readonly day: string;
  /** Null if the figure is withheld. */
  readonly value: number | null;
}

const HEIGHT = 262;
const TOP = 38;
const BASE = 208;
/** Widths are percentages of the picture: it stretches with the page while its text keeps its size. */
const LEFT = 12;
const MOST_TICKS = 4;
const WITHHELD_HEIGHT = 7;

const SHORT = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short", timeZone: "UTC" });

/** `2026-11-21` → 21 Nov. */
export const shortDay = (day: string): string => SHORT.format(new Date(`${day}T00:00:00Z`));

/** Integers from 0, evenly spaced in steps of 1, 2 or 5 times a power of ten; the last is at least `highest`. */
export function ticks(highest: number): readonly number[] {
  const steps = Array.from({ length: 16 }, (_, power) => [1, 2, 5].map((digit) => digit * 10 ** power)).flat();
  const step = steps.find((size) => size * MOST_TICKS >= highest) ?? highest;
  return Array.from({ length: Math.max(1, Math.ceil(highest / step)) + 1 }, (_, index) => index * step);
}

/**
 * A bar chart of the days as SVG, with a title, a description and named axes. The table beside it shows the same
 * figures.
 */
export function barChart(bars: readonly Bar[], title: string): Markup {
  const scale = ticks(Math.max(...bars.map(({ value }) => value ?? 0)));
  const most = scale.at(-1) ?? 1;
  const y = (value: number): string => (BASE - (value / most) * (BASE - TOP)).toFixed(1);
  const slot = (100 - LEFT) / bars.length;
  return html`<svg role="img" aria-labelledby="chart-title chart-desc" width="100%" height="${HEIGHT}" font-size="13">
<title id="chart-title">${title}</title><desc id="chart-desc">${description(bars)}</desc>
<g fill="var(--soft)"><text x="0" y="16">${title}</text>
${scale.map(
  (value) =>
    html`<line x1="${LEFT}%" x2="100%" y1="${y(value)}" y2="${y(value)}" stroke="${value === 0 ? "var(--soft)" : "var(--line)"}"/><text x="${LEFT - 1.5}%" y="${y(value)}" dy="4" text-anchor="end">${value.toLocaleString("en-US")}</text>`,
)}
${dayLabels(bars, slot)}
<text x="${(100 + LEFT) / 2}%" y="${BASE + 46}" text-anchor="middle">Day (UTC)</text></g>
${bars.map(({ value }, index) => {
  const place = html`x="${(LEFT + (index + 0.15) * slot).toFixed(2)}%" width="${(0.7 * slot).toFixed(2)}%"`;
  return value === null
    ? html`<rect ${place} y="${BASE - WITHHELD_HEIGHT}" height="${WITHHELD_HEIGHT}" fill="none" stroke="var(--soft)" stroke-dasharray="2 2"/>`
    : html`<rect ${place} y="${y(value)}" height="${(BASE - Number(y(value))).toFixed(1)}" fill="var(--accent)"/>`;
})}
</svg>`;
}

/** The first, middle and last day. */
const dayLabels = (bars: readonly Bar[], slot: number): readonly Markup[] =>
  [
    { index: 0, anchor: "start", x: LEFT },
    { index: Math.floor(bars.length / 2), anchor: "middle", x: LEFT + (Math.floor(bars.length / 2) + 0.5) * slot },
    { index: bars.length - 1, anchor: "end", x: 100 },
  ].map(({ index, anchor, x }) => {
    const bar = bars[index];
    return html`<text x="${x.toFixed(2)}%" y="${BASE + 20}" text-anchor="${anchor}">${bar && shortDay(bar.day)}</text>`;
  });

function description(bars: readonly Bar[]): string {
  const known = bars.flatMap(({ day, value }) => (value === null ? [] : [{ day, value }]));
  const highest = known.toSorted((a, b) => b.value - a.value)[0];
  const withheld = bars.length - known.length;
  const [first, last] = [bars[0], bars.at(-1)];
  return [
    `${bars.length} bars, one per day, from ${first && shortDay(first.day)} to ${last && shortDay(last.day)}.`,
    highest === undefined || highest.value === 0
      ? "All of them are zero."
      : `The highest is ${highest.value.toLocaleString("en-US")} on ${shortDay(highest.day)}.`,
    ...(withheld === 0 ? [] : [`${counted(withheld, "day is", "days are")} withheld, shown as dashed boxes.`]),
    "The table below lists every figure.",
  ].join(" ");
}
