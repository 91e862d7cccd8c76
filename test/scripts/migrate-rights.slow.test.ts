import { expect, test } from "vitest";
import { checkDatabase } from "../../api/operations/probes.ts";
import { connect } from "../../api/platform/db/connection.ts";
import { freePort } from "../../scripts/embedded/ports.ts";
import { startPostgres, withClient } from "../../scripts/embedded/postgres.ts";
import { migrate } from "../../scripts/migrate.ts";
import { folderForFile, forFile } from "../support/for-file.ts";

// A separate server, because roles belong to a whole server and the shared one already has the API's role.
const postgres = await forFile(
  startPostgres({ directory: await folderForFile("trust-rights-"), port: await freePort() }),
);
const asAdministrator = (text: string) => withClient(postgres.ownerUrl, (client) => client.query(text));

const loginUrl = (role: string): string => {
  const url = new URL(postgres.ownerUrl);
  [url.username, url.password] = [role, "secret"];
  return url.href;
};

test("Without the right to create roles, it prints the statements for an administrator and works once they have run", async () => {
  await asAdministrator(
    `CREATE ROLE "Trust owner" LOGIN PASSWORD 'secret'; REVOKE CREATE ON SCHEMA public FROM PUBLIC`,
  );
  const ownerUrl = loginUrl("Trust owner");
  const refused = await migrate(ownerUrl).catch((error: Error) => error.message);
  const statements = String(refused).split("\n\n")[1] ?? "";
  expect(refused).toMatch(/^The role "Trust owner" lacks rights\. Nothing was changed\. .* in the database "trust", /);
  expect(statements.split("\n").map((line) => line.trim())).toEqual([
    "CREATE ROLE trust_api NOLOGIN;",
    "CREATE ROLE trust_indexer NOLOGIN;",
    'GRANT CREATE ON DATABASE "trust" TO "Trust owner" WITH GRANT OPTION;',
    'GRANT CREATE ON SCHEMA public TO "Trust owner";',
    "",
  ]);

  await asAdministrator(statements);
  for (let run = 0; run < 2; run++) await migrate(ownerUrl);

  await asAdministrator("CREATE ROLE trust LOGIN PASSWORD 'secret' IN ROLE trust_api");
  const api = await forFile(connect(loginUrl("trust"), 1));
  expect(await checkDatabase(api)).toBeNull();
  expect((await api.query("SELECT count(*)::int AS rows FROM payment")).rows).toEqual([{ rows: 0 }]);
});
