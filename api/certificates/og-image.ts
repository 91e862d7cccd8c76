import { Resvg } from "@resvg/resvg-js";
import { formatUsd } from "../platform/money.ts";
import { NETWORKS } from "../platform/networks.ts";
import { html, type Markup } from "../platform/page/html.ts";
import { SITE_NAME } from "../platform/page/page.ts";
import { type Appearance, appearance, emblem } from "./appearance.ts";
import type { MarkedCertificate } from "./certificate.ts";
import { PRODUCTS } from "./products.ts";

/** The picture's fonts, as module specifiers. The caller resolves them to paths for `createOgRenderer`. */
export const OG_FONTS = [
  "@expo-google-fonts/ibm-plex-serif/400Regular/IBMPlexSerif_400Regular.ttf",
  "@expo-google-fonts/ibm-plex-serif/600SemiBold/IBMPlexSerif_600SemiBold.ttf",
  "@expo-google-fonts/ibm-plex-mono/400Regular/IBMPlexMono_400Regular.ttf",
] as const;

const SERIF = "IBM Plex Serif";
const MONO = "IBM Plex Mono";
const TONES = { pass: "#0b6447", fail: "#a1271c", gray: "#59636d" } as const;

/** The contents of a picture for link previews, all of it text. */
export interface Preview {
  /** The ID that the seal is drawn from. */
  readonly id: string;
  readonly shown: Pick<Appearance, "tone" | "short"> & { readonly word: string; readonly state: string };
  readonly headline: string;
  readonly title: string;
  /** The wallet or origin that was tested. */
  readonly subject: string;
  readonly fact: string;
}

export type RenderPreview = (preview: Preview) => Uint8Array;

/** Renders 1200 by 630 PNG pictures for link previews, using only the given font files. */
export const createOgRenderer =
  (fontFiles: readonly string[]): RenderPreview =>
  (preview) =>
    new Resvg(picture(preview).toString(), {
      font: {
        loadSystemFonts: false,
        fontFiles: [...fontFiles],
        defaultFontFamily: SERIF,
        serifFamily: SERIF,
        monospaceFamily: MONO,
      },
    })
      .render()
      .asPng();

export function certificatePreview(certificate: MarkedCertificate, now: Date): Preview {
  const shown = appearance(certificate, now);
  const headline = shown.state === "Current" ? certificate.level : shown.state;
  const { id, product, wallet } = certificate;
  return { id, shown, headline, title: PRODUCTS[product].title, subject: wallet, fact: paid(certificate) };
}

/** Returns the picture shown in place of a certificate's. */
export const placeholderPreview = (error: "missing" | "unavailable"): Preview => ({
  id: error,
  shown: {
    tone: "gray",
    short: error === "missing" ? "no certificate has this id" : "try again in a minute",
    word: "–",
    state: error === "missing" ? "Missing" : "Unavailable",
  },
  headline: error === "missing" ? "No certificate" : "Unavailable",
  title: error === "missing" ? "Nothing is on file here" : "The certificate cannot be read now",
  subject: "",
  fact: "",
});

const paid = ({ reversedAt, settlement }: MarkedCertificate): string =>
  reversedAt === null
    ? `Paid ${formatUsd(settlement.amountAtomic)} ${NETWORKS[settlement.network].money} on-chain.`
    : "The settlement is gone from the chain.";

function picture({ id, shown, headline, title, subject, fact }: Preview): Markup {
  const named = fitted(subject);
  return html`<svg xmlns="http://www.w3.org/2000/svg" width="1200" height="630" viewBox="0 0 1200 630" font-family="${SERIF}">
<rect width="1200" height="630" fill="#f5f2ea"/>
<rect x="32" y="32" width="1136" height="566" fill="#fffdf8" stroke="#d9d1bf"/>
<rect x="44" y="44" width="1112" height="542" fill="none" stroke="#b08a3c" stroke-width="1.5"/>
<svg x="748" y="100" width="372" height="372" viewBox="0 0 200 200" color="${TONES[shown.tone]}" font-weight="600">${emblem(id, shown)}</svg>
<g fill="#1a2430">
<text x="92" y="132" font-size="27" fill="#515c67">${SITE_NAME}</text>
<text x="88" y="${headline.length > 12 ? 252 : 262}" font-size="${headlineSize(headline)}" font-weight="600">${headline}</text>
<text x="92" y="326" font-size="36">${title}</text>
<text x="92" y="394" font-size="30" font-weight="600" fill="${TONES[shown.tone]}">${capitalize(shown.short)}</text>
<text x="92" y="502" font-size="${named.size}" font-family="${MONO}">${named.text}</text>
<text x="92" y="544" font-size="24" fill="#515c67">${fact !== "" && `${fact} A fact observed, not a safety guarantee.`}</text>
</g></svg>`;
}

/** Keeps the headline left of the seal. A letter is about 0.6 of the font size wide, with 640 units available. */
const headlineSize = (text: string): number => Math.min(96, Math.floor(640 / (0.58 * Math.max(1, text.length))));

const SUBJECT = { widest: 1_016, letter: 0.6, largest: 24, smallest: 14 } as const;
const MOST_LETTERS = Math.floor(SUBJECT.widest / (SUBJECT.letter * SUBJECT.smallest));

/**
 * Fits the subject on one line. If it is too long, its start is cut off, because the end of a host name shows who owns
 * it.
 */
function fitted(subject: string): { readonly text: string; readonly size: number } {
  const text = subject.length <= MOST_LETTERS ? subject : `…${subject.slice(1 - MOST_LETTERS)}`;
  const fits = Math.floor(SUBJECT.widest / (SUBJECT.letter * Math.max(1, text.length)));
  return { text, size: Math.min(SUBJECT.largest, fits) };
}

const capitalize = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1);
