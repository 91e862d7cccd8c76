import { parseAccept } from "hono/utils/accept";

interface Wish {
  /** 0 if the type is not accepted. */
  readonly quality: number;
  /** The position of the range that names the type itself; Infinity if there is none. */
  readonly place: number;
}

/** Returns a client's preference for a media type. The most specific range decides (RFC 9110, section 12.5.1). */
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

/** Whether an `Accept` header accepts a media type. Without the header, every type is accepted. */
export const accepts = (accept: string | undefined, type: string): boolean =>
  accept === undefined || accept === "" || wishFor(accept, type).quality > 0;

/**
 * Whether an `Accept` header prefers a media type to the default one, by a higher quality or, if equal, an earlier
 * position.
 */
export function prefers(accept: string | undefined, type: string, instead: string): boolean {
  if (accept === undefined || accept === "" || accept === "*/*") return false;
  const [wanted, other] = [wishFor(accept, type), wishFor(accept, instead)];
  return (
    wanted.quality > other.quality ||
    (wanted.quality > 0 && wanted.quality === other.quality && wanted.place < other.place)
  );
}
