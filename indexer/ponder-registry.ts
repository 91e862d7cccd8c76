type Handler = (input: never) => unknown;

/** `ponder:registry`: what the handlers say they handle. Ponder reads `fns`. */
export const ponder = {
  fns: [] as { readonly name: string; readonly fn: Handler }[],
  on(name: string, fn: Handler): void {
    this.fns.push({ name, fn });
  },
};
