/** With some of them silent, so long are the silent ones waited for. */
const SOME_SILENT_MS = 600_000;
/** With all of them silent: records queue meanwhile, nothing is lost. */
const ALL_SILENT_MS = 86_400_000;

/** Whether those who do not answer are to be waited for, counted from when they first did not. */
export type Patience = (answered: { readonly silent: readonly string[] }, sources: number) => boolean;

/** @param elapsedMs milliseconds since an arbitrary moment; never runs backwards */
export function createPatience(elapsedMs: () => number): Patience {
  let since: number | null = null;
  return ({ silent }, sources) => {
    since = silent.length === 0 ? null : (since ?? elapsedMs());
    return since !== null && elapsedMs() - since < (silent.length < sources ? SOME_SILENT_MS : ALL_SILENT_MS);
  };
}
