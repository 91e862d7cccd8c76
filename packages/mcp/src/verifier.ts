import type { Expectation, Report } from "../../verifier/src/index.ts";
import { read, type Service } from "./service.ts";

/** The parts of agent-payment-trust-verifier that are used; each program supplies it from its own location. */
export type Verifier = Pick<
  typeof import("../../verifier/src/index.ts"),
  "parseKeySet" | "verifyDocument" | "claimsOf" | "standingOf" | "replayScores" | "parsePolicy" | "checkListed"
>;

/** Returns the expectation that the service signed, with one of its published keys. */
export async function signedBy(service: Service, verifier: Verifier): Promise<Expectation> {
  const keys = await verifier.parseKeySet((await read(service, "/.well-known/jwks.json")).text);
  return { keys, issuer: service.baseUrl };
}

/** Checks a document that the service must have signed, with its published keys. */
export async function checkSigned(text: string, service: Service, verifier: Verifier): Promise<Report> {
  return verifier.verifyDocument(text, await signedBy(service, verifier));
}
