/** A seller's origin in its one form, like `https://shop.example` or `http://localhost:3000`. */
export type WebOrigin = `${"http" | "https"}://${string}`;

/** 253 for a name, with a scheme and a port; a name may be written three times as long in Unicode. */
const LONGEST = 800;
const FORM = /^https?:\/\/[^/?#\\@\s]+\/?$/i;
const MORE = /^https?:\/\/[^/?#\\@\s]+[/?#]/i;

/**
 * Reads an origin: lower case, names in Punycode, no default port, no slash at the end. A refusal says what would be right.
 */
export function parseOrigin(text: string): { readonly origin: WebOrigin } | { readonly refused: string } {
  if (text === "") return { refused: `is empty; ${EXPECTED}` };
  if (text.length > LONGEST) return { refused: `has ${text.length} characters; ${EXPECTED}` };
  if (FORM.test(text) && URL.canParse(text)) return named(new URL(text));
  if (MORE.test(text) && URL.canParse(text)) return { refused: `names more than an origin; ${rightly(text)}` };
  if (/^[a-z0-9.-]+(:\d+)?$/i.test(text) && URL.canParse(`https://${text}`))
    return { refused: `has no scheme; ${rightly(`https://${text}`)}` };
  return { refused: `is not an origin; ${EXPECTED}` };
}

function named({ origin, hostname }: URL): ReturnType<typeof parseOrigin> {
  if (!hostname.endsWith(".")) return { origin: origin as WebOrigin };
  return { refused: `ends in a dot; ${rightly(origin)}` };
}

const EXPECTED = "expected one like https://shop.example";

/** What would be right in place of this URL. A name of dots alone is none. */
function rightly(url: string): string {
  const bare = new URL(url).origin.replace(/\.+(?=:\d+$|$)/, "");
  return URL.canParse(bare) ? `expected ${bare}` : EXPECTED;
}
