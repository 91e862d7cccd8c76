/** A package as packed by npm. */
export interface Tarball {
  readonly bytes: Uint8Array<ArrayBuffer>;
  /** Hash of the bytes in lock file form: `sha512-` and base64. */
  readonly integrity: string;
}

/** The tarballs built so far, by file name. */
export type Tarballs = ReadonlyMap<string, Tarball>;
