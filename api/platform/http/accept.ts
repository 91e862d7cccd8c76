import { parseAccept } from "hono/utils/accept";

interface Wish {
  /** 0 for not at all. */
  readonly quality: number;
  /** The place of the range that names the type itself; Infinity if none does. */
  readonly place: number;
}

/** How much a client wants a media type: the most specific range decides (RFC 9110, section 12.5.1). */
function wishFor(accept: string, type: string): Wish {
  const ranges = parseAccept(accept);
  const [family] = type.split("/");
  for (const range of [type, `${family}/*`, "*/*"]) {
    const found = ranges.find((one) => one.type.toLowerCase() === range);
    const names = accept.toLowerCase().indexOf(type);
    if (found !== undefined) return { quality: found.q, place: range === type ? names : Number.POSITIVE_INFINITY };
  }
  return { quality: 0, place: Number.POSITIVE_INFINITY };
}

/** Whether an `Accept` header takes a media type at all. Everything is taken where there is none. */
export const accepts = (accept: string | undefined, type: string): boolean =>
  accept === undefined || accept === "" || wishFor(accept, type).quality > 0;

/** Whether an `Accept` header prefers a media type to the default one: by quality, and if that is the same, by naming it first. */
export function prefers(accept: string | undefined, type: string, instead: string): boolean {
  if (accept === undefined || accept === "" || accept === "*/*") return false;
  const [wanted, other] = [wishFor(accept, type), wishFor(accept, instead)];
  return (
    wanted.quality > other.quality ||
    (wanted.quality > 0 && wanted.quality === other.quality && wanted.place < other.place)
  );
}
