import { join } from "node:path";
import { pathToFileURL } from "node:url";

/** The parts of a checkout that are attacked. */
export interface Subject {
  readonly folder: string;
  readonly build: typeof import("../../api/main.ts").build;
  readonly connect: typeof import("../../api/adapters/postgres/connection.ts").connect;
  readonly parseConfig: typeof import("../../api/config.ts").parseConfig;
  readonly http: typeof import("../../api/adapters/process/http-server.ts");
  readonly runJobs: typeof import("../../api/wiring/jobs.ts").runJobs;
  readonly migrate: typeof import("../../scripts/migrate.ts").migrate;
}

/** Loads another checkout, or this one. Its exports are taken to have this one's types. */
export async function loadSubject(folder: string): Promise<Subject> {
  const load = (file: string) => import(pathToFileURL(join(folder, file)).href);
  const [main, connection, config, http, jobs, migrations] = await Promise.all(
    [
      "api/main.ts",
      "api/adapters/postgres/connection.ts",
      "api/config.ts",
      "api/adapters/process/http-server.ts",
      "api/wiring/jobs.ts",
      "scripts/migrate.ts",
    ].map(load),
  );
  return {
    folder,
    build: main.build,
    connect: connection.connect,
    parseConfig: config.parseConfig,
    http,
    runJobs: jobs.runJobs,
    migrate: migrations.migrate,
  };
}
