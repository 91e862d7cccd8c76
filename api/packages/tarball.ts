/** A package as npm packs it. */
export interface Tarball {
  readonly bytes: Uint8Array<ArrayBuffer>;
  /** Of the bytes, as lock files write it: `sha512-` and base64. */
  readonly integrity: string;
}

/** The tarballs that have been built, by the names of their files. */
export type Tarballs = ReadonlyMap<string, Tarball>;
