import { z } from "zod";
import { wallet } from "../fields.ts";
import { freeTool } from "../free-tool.ts";
import { read } from "../service.ts";
import { checkSigned } from "../verifier.ts";

const MAX_LENGTH = 32_768;

const REPORT = z.object({
  valid: z.boolean().describe("Signed by this service, unaltered, and not expired."),
  signature: z.looseObject({ valid: z.boolean(), reason: z.string().exactOptional() }),
  freshness: z.looseObject({ state: z.string() }),
  credential: z
    .record(z.string(), z.unknown())
    .nullable()
    .describe("The credential if its signature is valid; null otherwise."),
});

export const checkCredential = freeTool({
  name: "check_credential",
  title: "Check a credential",
  description:
    "Checks the Ed25519 signatures and freshness of a credential: a wallet's current one, or one that another agent gave you (pass its JSON text exactly as received). Free.",
  input: z.strictObject({
    wallet: wallet.optional(),
    credential: z.string().max(MAX_LENGTH).optional().describe("The credential's JSON text, exactly as received."),
  }),
  output: REPORT,
  reads: ["/credential/:wallet", "/.well-known/jwks.json"],
  async run({ wallet: subject, credential: handed }, { service, verifier }) {
    if ((subject === undefined) === (handed === undefined))
      throw new Error("Give exactly one of wallet and credential.");
    const text = handed ?? (await read(service, `/credential/${subject}`)).text;
    const { document, ...report } = await checkSigned(text, service, verifier);
    return { ...report, credential: document as Record<string, unknown> | null };
  },
});
