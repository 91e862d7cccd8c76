import { BaseSequencer, type TestSpecification } from "vitest/node";

/** The files that take longest, so that none of them begins when the others are nearly through. Of no other use. */
const LONGEST = [
  "journeys/embedded/kill-everything",
  "indexer/preload",
  "indexer/indexer",
  "journeys/payments/long-outages",
  "journeys/escrow/jobs",
  "journeys/payments/random-kills",
  "model/gate",
  "journeys/embedded/start",
  "browser/pages",
  "journeys/escrow/keeper",
  "indexer/escrow",
  "indexer/score-scenarios",
  "journeys/arbiter/load",
  "journeys/payments/kill",
  "browser/arbiter",
].map((name) => `/test/${name}.test.ts`);

/** Without the times of an earlier run, which a fresh clone does not have, Vitest goes by the size of files. */
export default class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files);
    // Among those of one project only: projects stay together.
    const rank = ({ moduleId, project }: TestSpecification) => {
      const place = LONGEST.findIndex((name) => moduleId.endsWith(name));
      return project.name !== "stack" ? -1 : place === -1 ? LONGEST.length : place;
    };
    return sorted.toSorted((a, b) => rank(a) - rank(b));
  }
}
