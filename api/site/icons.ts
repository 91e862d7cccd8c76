import { Resvg } from "@resvg/resvg-js";
import { FAVICON_SVG } from "../platform/page/page.ts";

/** The site's icon as a square PNG. */
export const iconPng = (size: number): Uint8Array =>
  new Resvg(FAVICON_SVG, { fitTo: { mode: "width", value: size }, font: { loadSystemFonts: false } }).render().asPng();

const HEADER_BYTES = 6;
const ENTRY_BYTES = 16;
const FAVICON_SIZES = [16, 32, 48] as const;

/** The site's icon as a Windows icon file: a directory followed by a PNG of each size. */
export function faviconIco(): Uint8Array {
  const images = FAVICON_SIZES.map((size) => ({ size, png: iconPng(size) }));
  const directory = Buffer.alloc(HEADER_BYTES + ENTRY_BYTES * images.length);
  directory.writeUInt16LE(1, 2);
  directory.writeUInt16LE(images.length, 4);
  let offset = directory.length;
  for (const [index, { size, png }] of images.entries()) {
    const at = HEADER_BYTES + ENTRY_BYTES * index;
    directory.writeUInt8(size, at);
    directory.writeUInt8(size, at + 1);
    directory.writeUInt16LE(1, at + 4);
    directory.writeUInt16LE(32, at + 6);
    directory.writeUInt32LE(png.length, at + 8);
    directory.writeUInt32LE(offset, at + 12);
    offset += png.length;
  }
  return Buffer.concat([directory, ...images.map(({ png }) => png)]);
}
