import { html, type Markup } from "./html.ts";

/** Draws an ellipse about (100, 100) turned by `angle`, as two arcs. */
function ellipse(angle: number, rx: number, ry: number): string {
  const [x, y] = [rx * Math.cos(angle), rx * Math.sin(angle)];
  const arc = `A${rx} ${ry} ${((angle * 180) / Math.PI).toFixed(1)} 0 1`;
  const [from, to] = [
    `${(100 + x).toFixed(1)} ${(100 + y).toFixed(1)}`,
    `${(100 - x).toFixed(1)} ${(100 - y).toFixed(1)}`,
  ];
  return `M${from}${arc} ${to}${arc} ${from}`;
}

const ring = (turns: number, rx: number, ry: number): string =>
  Array.from({ length: turns }, (_, turn) => ellipse((Math.PI * turn) / turns, rx, ry)).join("");

/**
 * Draws an engraved figure as on a banknote, 200 units wide with an open center, as a child for an `<svg>`. The same
 * seed gives the same figure, so each certificate has its own.
 */
export function rosette(seed: string): Markup {
  const pick = (position: number, choices: number): number => (seed.charCodeAt(position) || 0) % choices;
  const outer = ring(20 + 4 * pick(0, 4), 97, 62 + 3 * pick(1, 6));
  const inner = ring(12 + 4 * pick(2, 4), 70, 52 + 2 * pick(3, 4));
  return html`<path d="${outer}${inner}" fill="none" stroke="currentColor" stroke-width="0.75"/>`;
}
