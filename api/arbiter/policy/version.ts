import type { Category } from "./category.ts";
import type { ConditionResult, Policy, Verdict } from "./policy.ts";

/**
 * A version of the policy: what is published, and the code that decides by it. It is never edited; a change is a new
 * version in its own folder, and whatever was accepted or decided under this one stays with it.
 */
export interface PolicyVersion {
  readonly policy: Policy;
  readonly categories: readonly Category[];
  /** Those about which nothing has changed: their claims go on being decided by the version before. */
  readonly unchanged?: readonly Category[];
  /** The verdict that follows from a claim's judged conditions. */
  readonly decide: (results: readonly ConditionResult[]) => Verdict;
}

/** Versions by effective date, earliest first. */
export type PolicyVersions = readonly [PolicyVersion, ...PolicyVersion[]];

/** The version for claims accepted now: the last whose effective date (from 0:00 UTC) has come. */
export const versionAt = (versions: PolicyVersions, now: Date): PolicyVersion =>
  versions.findLast(({ policy }) => Date.parse(policy.effective_date) <= now.getTime()) ?? versions[0];

/**
 * The version that decides what is claimed now in this category: of those whose effective date has come, the last that
 * changed the category or brought it. Null if nothing can be claimed in it.
 */
export function versionFor(versions: PolicyVersions, name: string, now: Date): PolicyVersion | null {
  const current = versionAt(versions, now);
  const category = categoryNamed(current, name);
  if (category === null) return null;
  const decides = ({ categories, unchanged = [] }: PolicyVersion) =>
    categories.includes(category) && !unchanged.includes(category);
  return versions.slice(0, versions.indexOf(current) + 1).findLast(decides) ?? null;
}

/** The policies that decide what is claimed now, earliest first, each with the names of the categories that it decides. */
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

/** The version with that number; null if there is none. */
export const versionNumbered = (versions: PolicyVersions, number: number): PolicyVersion | null =>
  versions.find(({ policy }) => policy.version === number) ?? null;

/** The versions claims can still be made under: the one in force, and those to come. */
export const openVersions = (versions: PolicyVersions, now: Date): readonly PolicyVersion[] =>
  versions.slice(versions.indexOf(versionAt(versions, now)));

export const categoryNamed = ({ categories }: PolicyVersion, name: string): Category | null =>
  categories.find((one) => one.name === name) ?? null;

/** What decides one claim. */
export interface Rules {
  readonly version: PolicyVersion;
  readonly category: Category;
}

/** Both exist for every claim that was accepted. */
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
