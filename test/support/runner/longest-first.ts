import { BaseSequencer, type TestSpecification } from "vitest/node";

/** The slowest files, so that none of them starts when the others are nearly done. Serves no other purpose. */
const LONGEST = [
  "journeys/embedded/kill-everything",
  "indexer/preload",
  "indexer/indexer",
  "journeys/payments/long-outages",
  "journeys/escrow/jobs",
  "journeys/payments/random-kills",
  "model/gate",
  "journeys/payments/relayer",
  "journeys/embedded/start",
  "browser/pages",
  "journeys/escrow/keeper",
  "indexer/escrow",
  "indexer/score-scenarios",
  "journeys/arbiter/load",
  "journeys/payments/kill",
  "browser/arbiter",
].map((name) => `/test/${name}.test.ts`);

/** Without times from an earlier run, as in a fresh clone, Vitest sorts files by size. */
export default class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files);
    // Only among files of one project: projects stay together.
    const rank = ({ moduleId, project }: TestSpecification) => {
      const place = LONGEST.findIndex((name) => moduleId.endsWith(name));
      return project.name !== "stack" ? -1 : place === -1 ? LONGEST.length : place;
    };
    return sorted.toSorted((a, b) => rank(a) - rank(b));
  }
}
