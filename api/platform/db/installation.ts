import { createHmac } from "node:crypto";
import type pg from "pg";
import { accountAddress } from "../chain/remote-signer.ts";
import type { Config } from "../config/config.ts";
import { isLoopback } from "../config/values.ts";
import { MAIN_NETWORK } from "../networks.ts";

type Settings = Pick<Config, "payTo" | "arbiterKey" | "baseUrl" | "sealingKey" | "decoySeed">;

/** The identity that must not change unnoticed between two starts on one database, as text. */
type Identity = Readonly<Record<"pay_to" | "network" | "arbiter" | "origin" | "sealing_check" | "decoy_check", string>>;

const COLUMNS = ["pay_to", "network", "arbiter", "origin", "sealing_check", "decoy_check"] as const;
const VARIABLES: Identity = {
  pay_to: "PAY_TO_ADDRESS",
  network: "MAIN_NETWORK",
  arbiter: "ARBITER_PRIVATE_KEY",
  origin: "BASE_URL",
  sealing_check: "SEALING_KEY",
  decoy_check: "DECOY_SEED",
};
const BYTES: readonly string[] = ["pay_to", "arbiter", "sealing_check", "decoy_check"];

const SELECT = `SELECT ${COLUMNS.map((name) => (BYTES.includes(name) ? `'0x' || encode(${name}, 'hex') AS ${name}` : name)).join(", ")}
  FROM installation ORDER BY id DESC LIMIT 1`;
const VALUES = COLUMNS.map((name, i) =>
  BYTES.includes(name) ? `decode(substr($${i + 1}, 3), 'hex')` : `$${i + 1}`,
).join(", ");
const FIRST = `INSERT INTO installation (id, ${COLUMNS.join(", ")}) VALUES (1, ${VALUES}) ON CONFLICT DO NOTHING`;
const NEXT = `INSERT INTO installation (id, ${COLUMNS.join(", ")}, reason)
  SELECT max(id) + 1, ${VALUES}, $${COLUMNS.length + 1} FROM installation HAVING count(*) > 0`;

/**
 * Returns null if the database belongs to this installation; the first start on a database claims it. Otherwise one
 * line names the variable that differs, because a start with it would take payments to another address, sign under
 * another name, or be unable to read stored data.
 */
export async function checkInstallation(pool: pg.Pool, settings: Settings): Promise<string | null> {
  const own = identityOf(settings);
  await pool.query(
    FIRST,
    COLUMNS.map((name) => own[name]),
  );
  return installationProblem(pool, settings);
}

/** The same without claiming the database; also null if no service has started on it yet. */
export async function installationProblem(pool: pg.Pool, settings: Settings): Promise<string | null> {
  const own = identityOf(settings);
  const { rows } = await pool.query<Identity>(SELECT);
  const [known = own] = rows;
  const changed = COLUMNS.find((name) => known[name] !== own[name]);
  if (changed === undefined) return null;
  if (changed === "network") return OTHER_NETWORK(own.network, known.network);
  const difference = changed.endsWith("_check")
    ? "is not the one that this database was filled with"
    : `gives ${own[changed]}, but this database belongs to ${known[changed]}`;
  return `${VARIABLES[changed]} ${difference}. Set it back, or record a deliberate change with \`npm run installation:change -- --reason "…"\`.`;
}

/** Certificates of one network must never count on another. */
const OTHER_NETWORK = (own: string, known: string): string =>
  `MAIN_NETWORK gives ${own}, but this database belongs to ${known}. Set it back, or use an empty database.`;

/** Records a deliberate change. False if no service has started on this database yet, or nothing differs. */
export async function changeInstallation(pool: pg.Pool, settings: Settings, reason: string): Promise<boolean> {
  const own = identityOf(settings);
  const { rows } = await pool.query<Identity>(SELECT);
  const known = rows[0];
  if (known === undefined || COLUMNS.every((name) => known[name] === own[name])) return false;
  if (known.network !== own.network) throw new Error(OTHER_NETWORK(own.network, known.network));
  await pool.query(NEXT, [...COLUMNS.map((name) => own[name]), reason]);
  return true;
}

const identityOf = ({ payTo, arbiterKey, baseUrl, sealingKey, decoySeed }: Settings): Identity => ({
  pay_to: payTo,
  network: MAIN_NETWORK,
  arbiter: accountAddress(arbiterKey),
  origin: isLoopback(new URL(baseUrl).hostname) ? "loopback" : baseUrl,
  sealing_check: checkOf(sealingKey),
  decoy_check: checkOf(decoySeed),
});

const checkOf = (key: Uint8Array): string => `0x${createHmac("sha256", key).update("installation").digest("hex")}`;
