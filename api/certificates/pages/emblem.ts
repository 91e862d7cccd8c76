import { html, type Markup } from "../../platform/page/html.ts";
import { rosette } from "../../platform/page/rosette.ts";

interface Seal {
  readonly word: string;
  readonly state: string;
}

const stands = (state: string): boolean => state === "Current" || state === "Failed";

/** The engraved seal of a certificate, 200 units wide: its own figure around its result and state. */
export const emblem = (id: string, { word, state }: Seal): Markup =>
  html`${rosette(id)}<text x="100" y="${stands(state) ? 111 : 104}" font-size="31" text-anchor="middle" fill="currentColor">${word}</text>${
    !stands(state) &&
    html`<text x="100" y="123" font-size="14" text-anchor="middle" fill="currentColor">${state.toLowerCase()}</text>`
  }`;
