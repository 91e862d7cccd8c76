import { z } from "zod";
import { time, url } from "../http/schema.ts";
import { PROOF } from "./signing-schemas.ts";

/** What every signed credential (W3C data model 2.0) has around its subject. */
export const CREDENTIAL_MEMBERS = {
  "@context": z
    .tuple([
      z.literal("https://www.w3.org/ns/credentials/v2"),
      z.literal("https://www.w3.org/ns/credentials/undefined-terms/v2"),
    ])
    .meta({ items: { type: "string" } }),
  id: url,
  type: z.array(z.string()),
  issuer: z.string().regex(/^did:web:/),
  validFrom: time,
  validUntil: time.exactOptional(),
  proof: PROOF,
};
