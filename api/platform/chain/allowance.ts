import { isTransport } from "./rpc-errors.ts";

/** How many calls one look-up may still make. Repeats count. */
export interface Allowance {
  readonly left: () => number;
  readonly spend: () => void;
}

export function createAllowance(calls: number): Allowance {
  let left = calls;
  return {
    left: () => left,
    spend: () => {
      if (left <= 0) throw new Error("a look-up may not make another call");
      left--;
    },
  };
}

/** Makes a call, and repeats it once if the node failed to answer and the allowance covers that. */
export async function spending<T>(allowance: Allowance, call: () => Promise<T>): Promise<T> {
  allowance.spend();
  try {
    return await call();
  } catch (error) {
    if (!isTransport(error) || allowance.left() === 0) throw error;
    allowance.spend();
    return call();
  }
}
