// The parts that the tests use of three packages without types.
declare module "@digitalbazaar/eddsa-jcs-2022-cryptosuite" {
  export function createVerifyCryptosuite(): object;
}
declare module "@digitalbazaar/data-integrity" {
  export class DataIntegrityProof {
    constructor(options: { cryptosuite: object });
  }
}
declare module "jsonld-signatures" {
  interface Verification {
    readonly suite: object;
    readonly purpose: object;
    readonly documentLoader: (url: string) => Promise<{ readonly document: unknown }>;
  }
  const signatures: {
    verify(
      document: object,
      verification: Verification,
    ): Promise<{ readonly verified: boolean; readonly error?: unknown }>;
    readonly purposes: { readonly AssertionProofPurpose: new () => object };
  };
  export default signatures;
}
