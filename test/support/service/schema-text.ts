import type pg from "pg";

/** The rights of roles other than the owner. */
const granted = (acl: string, owner: string): string => `coalesce((
  SELECT string_agg(format(E'\\n    GRANT %s TO %s', rights, role), '' ORDER BY role) FROM (
    SELECT CASE grantee WHEN 0 THEN 'public' ELSE grantee::regrole::text END AS role,
      string_agg(privilege_type, ', ' ORDER BY privilege_type) AS rights
    FROM aclexplode(${acl}) WHERE grantee <> ${owner} GROUP BY 1) AS others), '')`;

const commented = (comment: string): string => `coalesce(E'\\n    -- ' || ${comment}, '')`;

const COLUMNS = `SELECT string_agg(format('  %s %s%s%s%s%s', attname, format_type(atttypid, atttypmod),
    CASE WHEN attnotnull THEN ' NOT NULL' END,
    CASE attidentity WHEN 'a' THEN ' GENERATED ALWAYS AS IDENTITY' END,
    CASE attgenerated WHEN 's' THEN ' GENERATED ALWAYS AS ' ELSE ' DEFAULT ' END || pg_get_expr(adbin, adrelid),
    CASE WHEN attstorage <> typstorage THEN ' STORAGE ' || attstorage::text END)
    || ${commented("col_description(attrelid, attnum)")} || ${granted("attacl", "this.relowner")}, E'\\n' ORDER BY attnum)
  FROM pg_attribute JOIN pg_type ON pg_type.oid = atttypid LEFT JOIN pg_attrdef ON adrelid = attrelid AND adnum = attnum
  WHERE attrelid = this.oid AND attnum > 0 AND NOT attisdropped AND relkind = 'r'`;

const CONSTRAINTS = `SELECT string_agg(format('  CONSTRAINT %s %s', conname, pg_get_constraintdef(oid)), E'\\n' ORDER BY conname)
  FROM pg_constraint WHERE conrelid = this.oid AND contype <> 'n'`;

const INDEXES = `SELECT string_agg('  ' || pg_get_indexdef(indexrelid), E'\\n' ORDER BY indexrelid::regclass::text)
  FROM pg_index WHERE indrelid = this.oid AND NOT EXISTS (SELECT FROM pg_constraint WHERE conindid = indexrelid AND conrelid = indrelid)`;

const TRIGGERS = `SELECT string_agg(format('  %s%s', pg_get_triggerdef(oid),
    CASE tgenabled WHEN 'O' THEN '' WHEN 'A' THEN ' -- always' ELSE ' -- disabled' END), E'\\n' ORDER BY tgname)
  FROM pg_trigger WHERE tgrelid = this.oid AND NOT tgisinternal`;

const OWNED = "SELECT FROM pg_depend WHERE objid = this.oid AND classid = 'pg_class'::regclass AND deptype = 'i'";

const PARTS = [
  `SELECT format('SCHEMA %s%s%s', nspname, ${commented("obj_description(oid, 'pg_namespace')")}, ${granted("nspacl", "nspowner")})
   FROM pg_namespace WHERE nspname IN ('public', 'live') ORDER BY nspname`,
  `SELECT format('DEFAULT PRIVILEGES IN SCHEMA %s%s', defaclnamespace::regnamespace, ${granted("defaclacl", "defaclrole")})
   FROM pg_default_acl ORDER BY 1`,
  `SELECT rtrim(pg_get_functiondef(oid), E'\\n') || ${commented("obj_description(oid, 'pg_proc')")} || ${granted("proacl", "proowner")}
   FROM pg_proc WHERE pronamespace = 'public'::regnamespace ORDER BY proname`,
  `SELECT concat_ws(E'\\n', format('%s %s%s%s%s', CASE relkind WHEN 'r' THEN 'TABLE' WHEN 'v' THEN 'VIEW' ELSE 'SEQUENCE' END,
     relname, ' WITH ' || array_to_string(reloptions, ', '), ${commented("obj_description(oid, 'pg_class')")}, ${granted("relacl", "relowner")}),
     CASE relkind WHEN 'v' THEN pg_get_viewdef(oid) END, (${COLUMNS}), (${CONSTRAINTS}), (${INDEXES}), (${TRIGGERS}))
   FROM pg_class AS this WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'v', 'S')
     AND NOT (relkind = 'S' AND EXISTS (${OWNED})) ORDER BY relname`,
];

/** The schema of a database as text. Two databases with the same schema have the same text. Needs no `pg_dump`. */
export async function schemaText(client: pg.Client): Promise<string> {
  const texts: string[] = [];
  for (const text of PARTS) {
    const { rows } = await client.query<[string]>({ text, rowMode: "array" });
    texts.push(...rows.map(([part]) => part.trim()));
  }
  return `${texts.join("\n\n")}\n`;
}
