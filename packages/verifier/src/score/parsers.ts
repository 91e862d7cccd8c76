import { InputError, quote } from "../refusal.ts";
import { isObject, type Json } from "../strict-json.ts";

/** Reads one value; `path` is its location, for error messages. @throws InputError */
export type Parse<T> = (value: Json | undefined, path: string) => T;

const refuse = (path: string, value: Json | undefined, expected: string): never => {
  throw new InputError(`${path} is ${quote(value)}; expected ${expected}`);
};

/** An object with exactly these members. */
export const object =
  <T>(members: { readonly [Name in keyof T]: Parse<T[Name]> }): Parse<T> =>
  (value, path) => {
    if (!isObject(value)) return refuse(path, value, "an object");
    const strange = Object.keys(value).find((name) => !Object.hasOwn(members, name));
    if (strange !== undefined) throw new InputError(`${path} has an unknown member ${quote(strange)}`);
    const read = ([name, parse]: [string, Parse<unknown>]) => [name, parse(value[name], `${path}.${name}`)];
    return Object.fromEntries(Object.entries<Parse<unknown>>(members).map(read));
  };

interface ListRules<T> {
  /** A key that is unique per item. */
  readonly identity: (item: T) => string;
  readonly max?: number;
}

/** A list of such items without duplicates. */
export const list =
  <T>(item: Parse<T>, { identity, max = Number.POSITIVE_INFINITY }: ListRules<T>): Parse<readonly T[]> =>
  (value, path) => {
    if (!Array.isArray(value)) return refuse(path, value, "a list");
    if (value.length > max) throw new InputError(`${path} has ${value.length} items; expected at most ${max}`);
    const items = value.map((one, index) => item(one, `${path}[${index}]`));
    const seen = new Set<string>();
    for (const [index, one] of items.entries()) {
      if (seen.has(identity(one))) throw new InputError(`${path}[${index}] repeats ${quote(identity(one))}`);
      seen.add(identity(one));
    }
    return items;
  };

/** The same type, or null. */
export const nullable =
  <T>(parse: Parse<T>): Parse<T | null> =>
  (value, path) =>
    value === null ? null : parse(value, path);

/** One of these strings. */
export const oneOf =
  <T extends string>(...known: readonly T[]): Parse<T> =>
  (value, path) =>
    known.find((name) => name === value) ?? refuse(path, value, `one of ${known.join(", ")}`);

/** A string that passes a test; `expected` describes it in the error message. */
export const text =
  <T extends string>(holds: (text: string) => boolean, expected: string): Parse<T> =>
  (value, path) =>
    typeof value === "string" && holds(value) ? (value as T) : refuse(path, value, expected);

/** A string that matches this pattern. */
export const matching = <T extends string>(pattern: RegExp, expected: string) =>
  text<T>((value) => pattern.test(value), expected);

/** A whole number that JSON can carry exactly, and at least `least`. */
export const whole =
  (least: number): Parse<number> =>
  (value, path) =>
    typeof value === "number" && Number.isSafeInteger(value) && value >= least
      ? value
      : refuse(path, value, `a whole number of at least ${least}`);
