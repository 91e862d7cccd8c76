import type { Expectation, Report } from "../../verifier/src/index.ts";
import { read, type Service } from "./service.ts";

/** What is needed of agent-payment-trust-verifier; each program supplies it from its own location. */
export type Verifier = Pick<
  typeof import("../../verifier/src/index.ts"),
  "parseKeySet" | "verifyDocument" | "claimsOf" | "standingOf" | "replayScores" | "parsePolicy" | "checkListed"
>;

/** That the service has signed, with one of the keys that it publishes. */
export async function signedBy(service: Service, verifier: Verifier): Promise<Expectation> {
  const keys = await verifier.parseKeySet((await read(service, "/.well-known/jwks.json")).text);
  return { keys, issuer: service.baseUrl };
}

/** Checks a document the service must have signed, using the keys it publishes. */
export async function checkSigned(text: string, service: Service, verifier: Verifier): Promise<Report> {
  return verifier.verifyDocument(text, await signedBy(service, verifier));
}
