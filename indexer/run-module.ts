/** Runs one of the index's modules, of this URL. */
export const runModule = (url: string): Promise<Record<string, unknown>> => import(url);
