import { AsyncLocalStorage } from "node:async_hooks";

const current = new AsyncLocalStorage<string>();

/** Runs the handling of one request. Everything logged meanwhile, however deep, can name the request. */
export const inRequest = <T>(id: string, handle: () => Promise<T>): Promise<T> => current.run(id, handle);

/** For the log: the current request, or nothing in a job. */
export const requestFacts = (): { readonly request_id?: string } => {
  const id = current.getStore();
  return id === undefined ? {} : { request_id: id };
};
