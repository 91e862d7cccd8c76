import type { Category } from "./category.ts";
import type { ConditionResult, Policy, Verdict } from "./policy.ts";

/**
 * A version of the policy: the published text and the code that decides by it. It is never edited. A change is a new
 * version in its own folder; claims accepted or decided under this version stay with it.
 */
export interface PolicyVersion {
  readonly policy: Policy;
  readonly categories: readonly Category[];
  /** The categories that did not change. The previous version still decides their claims. */
  readonly unchanged?: readonly Category[];
  /** Returns the verdict for a claim's judged conditions. */
  readonly decide: (results: readonly ConditionResult[]) => Verdict;
}

export type PolicyVersions = readonly [PolicyVersion, ...PolicyVersion[]];

/** Returns the version for claims accepted now: the latest whose effective date (0:00 UTC) has passed. */
export const versionAt = (versions: PolicyVersions, now: Date): PolicyVersion =>
  versions.findLast(({ policy }) => Date.parse(policy.effective_date) <= now.getTime()) ?? versions[0];

/**
 * Returns the version that decides claims made now in this category: the latest in effect that changed or added it.
 * Null if the category accepts no claims.
 */
export function versionFor(versions: PolicyVersions, name: string, now: Date): PolicyVersion | null {
  const current = versionAt(versions, now);
  const category = categoryNamed(current, name);
  if (category === null) return null;
  const decides = ({ categories, unchanged = [] }: PolicyVersion) =>
    categories.includes(category) && !unchanged.includes(category);
  return versions.slice(0, versions.indexOf(current) + 1).findLast(decides) ?? null;
}

/**
 * Returns the policies that decide claims made now, earliest first, each with the names of the categories it decides.
 */
export function decidingPolicies(versions: PolicyVersions, now: Date): DecidingPolicies {
  const names = versionAt(versions, now).categories.map(({ name }) => name);
  const [first, ...others] = versions
    .map((version) => ({
      policy: version.policy,
      decides: names.filter((name) => versionFor(versions, name, now) === version),
    }))
    .filter(({ decides }) => decides.length > 0);
  if (first === undefined) throw new Error("no version of the policy has a category");
  return [first, ...others];
}

export interface DecidingPolicy {
  readonly policy: Policy;
  readonly decides: readonly string[];
}

export type DecidingPolicies = readonly [DecidingPolicy, ...DecidingPolicy[]];

/** Returns the version with that number, or null. */
export const versionNumbered = (versions: PolicyVersions, number: number): PolicyVersion | null =>
  versions.find(({ policy }) => policy.version === number) ?? null;

/** Returns the versions under which claims can still be made: the current one and upcoming ones. */
export const openVersions = (versions: PolicyVersions, now: Date): readonly PolicyVersion[] =>
  versions.slice(versions.indexOf(versionAt(versions, now)));

export const categoryNamed = ({ categories }: PolicyVersion, name: string): Category | null =>
  categories.find((one) => one.name === name) ?? null;

/** The rules that decide one claim. */
export interface Rules {
  readonly version: PolicyVersion;
  readonly category: Category;
}

/** Returns the rules for an accepted claim. Throws if the version or the category does not exist. */
export function rulesFor(
  versions: PolicyVersions,
  claim: { readonly version: number; readonly category: string },
): Rules {
  const version = versionNumbered(versions, claim.version);
  const category = version && categoryNamed(version, claim.category);
  if (version === null || category === null)
    throw new Error(`no category ${claim.category} in policy version ${claim.version}`);
  return { version, category };
}
