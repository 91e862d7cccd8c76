import { BaseSequencer, type TestSpecification } from "vitest/node";

/** The slowest files, so that none of them starts when the others are nearly done. Serves no other purpose. */
const LONGEST = [
  "indexer/indexer",
  "indexer/preload",
  "journeys/embedded/kill-everything",
  "journeys/payments/long-outages",
  "indexer/new-release",
  "journeys/escrow/jobs",
  "journeys/base-like/escrow",
  "packages/readmes",
  "journeys/embedded/start",
  "indexer/escrow-added",
  "journeys/payments/reorganisations",
  "model/gate",
  "indexer/escrow",
  "journeys/payments/kill",
  "journeys/payments/random-kills",
  "journeys/arbiter/load",
  "journeys/payments/black-hole",
  "journeys/payments/postgres-restart",
  "journeys/escrow/chain",
  "journeys/payments/upkeep",
  "journeys/payments/relayer",
  "indexer/prune",
  "indexer/golden",
  "packages/mcp/package",
  "journeys/payments/at-scale",
  "journeys/payments/windows",
  "journeys/payments/two-readings",
  "journeys/payments/contested",
  "api/packages/packages",
].map((name) => `/test/${name}.test.ts`);

/** Without times from an earlier run, as in a fresh clone, Vitest sorts files by size. */
export default class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files);
    // Only among files of one project: projects stay together.
    const projects = [...new Set(sorted.map(({ project }) => project.name))];
    const rank = ({ moduleId, project }: TestSpecification) => {
      const place = LONGEST.findIndex((name) => moduleId.endsWith(name));
      return projects.indexOf(project.name) * 1_000 + (place === -1 ? LONGEST.length : place);
    };
    return sorted.toSorted((a, b) => rank(a) - rank(b));
  }
}
