export const SECURITY_PATH = "/.well-known/security.txt";

const DAY_MS = 86_400_000;
const VALID_FOR_DAYS = 180;

/** Returns the text of `security.txt` (RFC 9116). It expires 180 days after the day it is requested. */
export function securityTxt({ contact, baseUrl, now }: { contact: string; baseUrl: string; now: Date }): string {
  const today = Math.floor(now.getTime() / DAY_MS) * DAY_MS;
  return [
    `Contact: ${contact}`,
    `Expires: ${new Date(today + VALID_FOR_DAYS * DAY_MS).toISOString()}`,
    "Preferred-Languages: en",
    `Canonical: ${baseUrl}${SECURITY_PATH}`,
    `Policy: ${baseUrl}/terms`,
    "",
  ].join("\n");
}
