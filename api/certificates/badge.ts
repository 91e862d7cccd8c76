import { makeBadge } from "badge-maker";
import { etagOf } from "../platform/http/etag.ts";
import { appearance } from "./appearance.ts";
import type { ShownCertificate } from "./certificate.ts";
import { PRODUCTS } from "./products.ts";

const COLORS = { pass: "#16704c", fail: "#b3261e", grey: "#646c75" } as const;
const LABEL_COLOR = "#2a343e";

interface Drawn {
  readonly id: string;
  readonly label: string;
  readonly tone: keyof typeof COLORS;
  readonly message: string;
}

/** A badge as SVG, with a role, a label and a title. */
export const drawBadge = ({ id, tone, ...text }: Drawn): string =>
  makeBadge({ ...text, color: COLORS[tone], labelColor: LABEL_COLOR, idSuffix: id });

/** The README badge. Its date is absolute, so a cached copy stays true. */
export function renderBadge(certificate: ShownCertificate, now: Date): string {
  const { tone, short } = appearance(certificate, now);
  return drawBadge({ id: certificate.id, label: PRODUCTS[certificate.product].badge, tone, message: short });
}

/** The badge for an id without a certificate. */
export const renderUnknownBadge = (): string =>
  makeBadge({ label: "agent payments", message: "no such certificate", color: COLORS.grey, labelColor: LABEL_COLOR });

/** A rendered badge's strong ETag. */
export const badgeEtag = (svg: string): string => etagOf(svg);
