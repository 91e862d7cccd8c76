import type { Report } from "../../verifier/src/index.ts";
import { read, type Service } from "./service.ts";

/** What is needed of agent-payment-trust-verifier; each program supplies it from its own location. */
export type Verifier = Pick<
  typeof import("../../verifier/src/index.ts"),
  "parseKeySet" | "verifyDocument" | "replayScores"
>;

/** Checks a document the service must have signed, using the keys it publishes. */
export async function checkSigned(text: string, service: Service, verifier: Verifier): Promise<Report> {
  const keys = await verifier.parseKeySet((await read(service, "/.well-known/jwks.json")).text);
  return verifier.verifyDocument(text, { keys, issuer: service.baseUrl });
}
