import { z } from "zod";
import { address, count, time, url } from "../../platform/http/schema.ts";
import type { Signed } from "../../platform/signing/document.ts";
import { PROOF } from "../../platform/signing/signing-schemas.ts";
import { CHECKS, CREDENTIAL, certificateId, product, result } from "../certification-schemas.ts";
import type { certificateCredential } from "./credential.ts";

/** One certificate as a credential that never changes. */
export const CERTIFICATE_CREDENTIAL = z
  .object({
    "@context": CREDENTIAL.shape["@context"],
    id: url,
    type: z.array(z.string()),
    issuer: CREDENTIAL.shape.issuer,
    validFrom: time,
    validUntil: time,
    credentialSubject: z.object({
      id: CREDENTIAL.shape.credentialSubject.shape.id,
      wallet: address,
      certificate: certificateId,
      product,
      test_version: count,
      result,
      level: z.string(),
      checks: CHECKS,
      cert_url: url,
    }),
    proof: PROOF,
  })
  .meta({ id: "CertificateCredential" }) satisfies z.ZodType<Signed<ReturnType<typeof certificateCredential>>>;
