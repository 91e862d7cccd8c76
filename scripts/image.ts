import { execFile, spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { createWriteStream } from "node:fs";
import { copyFile, mkdir, mkdtemp, readdir, readFile, rename, rm, stat, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import { pipeline } from "node:stream/promises";
import { fileURLToPath } from "node:url";
import { parseArgs, promisify } from "node:util";
import { createGzip } from "node:zlib";
import { PACKAGES, tarballName, WHEEL } from "../api/platform/packages.ts";
import { TARBALLS } from "../api/site/packages/tarballs.ts";

/*
 * Builds the OCI image of the service from the last commit, without Docker. The same commit and the same Debian packages
 * produce the same bytes. The image has Debian's C library, the result of `npm ci --omit=dev`, and the committed files. It
 * has no shell or package manager.
 */

const ROOT = fileURLToPath(new URL("..", import.meta.url));
const NAME = "agent-payment-trust";
/** The folder of the service's files in the image. */
const HOME = "app";
const USER = 65_532;
/** The bill of materials in the service's folder. */
const BILL = "sbom.cdx.json";
/** The committed files that run, and the files that they read. */
const COMMITTED = ["LICENSE", "package.json", "package-lock.json", "tsconfig.json"].concat([
  "api",
  "contracts",
  "docs",
  "indexer",
  "packages",
  "scripts",
]);
/** The libraries that Node's binary and native modules link to, and the distribution's name for scanners. */
const DEBIAN_PACKAGES = ["base-files", "libc6", "libgcc-s1", "libstdc++6"];
const ARCHITECTURES: Readonly<Record<string, string>> = { x64: "amd64", arm64: "arm64" };
const MOST_OUTPUT = 256 * 1024 * 1024;

const call = promisify(execFile);

export interface BuiltImage {
  /** The digest of the manifest, as in `image@sha256:…`. */
  readonly digest: string;
  /** An OCI layout that `docker load` also reads. */
  readonly archive: string;
  /** The bill of materials in CycloneDX. */
  readonly sbom: string;
  readonly tag: string;
}

/** Builds the image of the last commit into a folder. */
export async function buildImage(into: string): Promise<BuiltImage> {
  const work = await mkdtemp(join(tmpdir(), "trust-image-"));
  const umask = process.umask(0o022);
  try {
    const commit = await readCommit();
    const rootfs = join(work, "rootfs");
    await install(work, rootfs, commit);
    return await packImage({ rootfs, commit, work, into });
  } finally {
    process.umask(umask);
    await rm(work, { recursive: true, force: true });
  }
}

/** Puts everything that the image contains into a folder. */
async function install(work: string, rootfs: string, commit: Commit): Promise<void> {
  const app = join(rootfs, HOME);
  await mkdir(app, { recursive: true });
  const debian = await unpackDebian(work, rootfs);
  await checkOut(app);
  await buildTarballs(app);
  await run("npm", ["ci", "--omit=dev", "--prefer-offline", "--no-audit", "--no-fund"], app);
  await writeFile(join(app, BILL), await billOfMaterials(app, commit, debian));
}

interface Packing {
  /** The installed files. Their times and owners, and their order in the folder, do not matter. */
  readonly rootfs: string;
  readonly commit: Commit;
  /** For temporary files. */
  readonly work: string;
  readonly into: string;
}

/** Packs an image's installed files. */
export async function packImage({ rootfs, commit, work, into }: Packing): Promise<BuiltImage> {
  const layout = join(work, "layout");
  const blobs = join(layout, "blobs", "sha256");
  await mkdir(blobs, { recursive: true });
  const modules = `./${HOME}/node_modules`;
  const from = { rootfs, blobs, commit };
  const layers = [
    await writeLayer(from, [`--exclude=./${HOME}`, "."]),
    await writeLayer(from, [SAME_MODES, modules]),
    await writeLayer(from, [SAME_MODES, `--exclude=${modules}`, `./${HOME}`]),
  ];
  const config = await writeBlob(
    blobs,
    imageConfig(
      commit,
      layers.map(({ diffId }) => diffId),
    ),
  );
  const manifest = await writeBlob(blobs, {
    schemaVersion: 2,
    mediaType: "application/vnd.oci.image.manifest.v1+json",
    config: { mediaType: "application/vnd.oci.image.config.v1+json", ...config },
    layers: layers.map(({ digest, size }) => ({
      mediaType: "application/vnd.oci.image.layer.v1.tar+gzip",
      digest,
      size,
    })),
  });
  await writeIndex(layout, { commit, manifest, config, layers });

  await mkdir(into, { recursive: true });
  const base = join(into, `${NAME}-${commit.tag}`);
  const archive = join(work, "image.tar");
  await run("tar", [...reproducible(commit), SAME_MODES, "-cf", archive, "-C", layout, "."]);
  await run("mv", [archive, `${base}.oci.tar`]);
  await copyFile(join(rootfs, HOME, BILL), `${base}.cdx.json`);
  return { digest: manifest.digest, archive: `${base}.oci.tar`, sbom: `${base}.cdx.json`, tag: commit.tag };
}

interface Commit {
  readonly hash: string;
  /** In seconds. */
  readonly time: number;
  readonly version: string;
  /** The version if the commit is the release, else the version with the start of the commit's hash. */
  readonly tag: string;
}

export async function readCommit(): Promise<Commit> {
  const git = async (...args: readonly string[]) => (await call("git", args, { cwd: ROOT })).stdout.trim();
  const hash = await git("rev-parse", "HEAD");
  const { version } = JSON.parse(await git("show", "HEAD:package.json"));
  const isRelease = (await git("tag", "--points-at", "HEAD")).split("\n").includes(`v${version}`);
  const tag = isRelease ? version : `${version}-${hash.slice(0, 12)}`;
  return { hash, version, tag, time: Number(await git("show", "--no-patch", "--format=%ct", "HEAD")) };
}

interface DebianPackage {
  readonly name: string;
  readonly version: string;
  readonly architecture: string;
  readonly sha256: string;
}

/** Unpacks the Debian packages, and lists them for scanners of images without dpkg. */
async function unpackDebian(work: string, rootfs: string): Promise<readonly DebianPackage[]> {
  const debs = join(work, "debs");
  await mkdir(debs);
  await run("apt-get", ["download", ...DEBIAN_PACKAGES], debs);
  const noted = join(rootfs, "var/lib/dpkg/status.d");
  await mkdir(noted, { recursive: true });
  const found: DebianPackage[] = [];
  for (const file of (await readdir(debs)).sort()) {
    const deb = join(debs, file);
    await run("dpkg-deb", ["--extract", deb, rootfs]);
    const { stdout: control } = await call("dpkg-deb", ["--field", deb]);
    const field = (name: string) => new RegExp(`^${name}: (.*)$`, "m").exec(control)?.[1] ?? "";
    const sha256 = createHash("sha256")
      .update(await readFile(deb))
      .digest("hex");
    const facts = { name: field("Package"), version: field("Version"), architecture: field("Architecture"), sha256 };
    found.push(facts);
    await writeFile(join(noted, facts.name), control);
  }
  await writeFile(
    join(rootfs, "etc/passwd"),
    `root:x:0:0::/root:/sbin/nologin\ntrust:x:${USER}:${USER}::/:/sbin/nologin\n`,
  );
  await writeFile(join(rootfs, "etc/group"), `root:x:0:\ntrust:x:${USER}:\n`);
  // Ponder listens on localhost. Docker and Kubernetes mount their own file.
  await writeFile(join(rootfs, "etc/hosts"), "127.0.0.1 localhost\n::1 localhost\n");
  return found;
}

async function checkOut(app: string): Promise<void> {
  const archive = `${app}.tar`;
  await run("git", ["archive", "--output", archive, "HEAD", "--", ...COMMITTED], ROOT);
  await run("tar", ["-xf", archive, "-C", app]);
  await rm(archive);
}

/** Builds the packages that the service serves, because the image does not have the development dependencies. */
async function buildTarballs(app: string): Promise<void> {
  const borrowed = join(app, "node_modules");
  await symlink(join(ROOT, "node_modules"), borrowed);
  await run(process.execPath, [join(app, "scripts/packages.ts")], app);
  await rm(borrowed);
  const built = await readdir(join(app, relative(ROOT, TARBALLS)));
  const missing = [...PACKAGES.map(tarballName), WHEEL].filter((name) => !built.includes(name));
  if (missing.length > 0)
    throw new Error(`${missing.join(", ")} could not be built: the wheel needs Python 3.10 with venv, and PyPI.`);
}

interface Installed {
  readonly name?: string;
  readonly version: string;
  readonly license?: string;
  readonly integrity?: string;
}

/**
 * Returns the CycloneDX of the packages that npm installed, from its own list, and of Debian's packages. `npm sbom` rejects a
 * tree with an unmet peer dependency.
 */
async function billOfMaterials(app: string, commit: Commit, debian: readonly DebianPackage[]): Promise<string> {
  const { packages } = JSON.parse(await readFile(join(app, "node_modules/.package-lock.json"), "utf8"));
  const components = new Map<string, object>();
  for (const [path, installed] of Object.entries<Installed>(packages)) {
    const { name = path.slice(path.lastIndexOf("node_modules/") + 13), version, license, integrity } = installed;
    const purl = `pkg:npm/${name.replace("@", "%40")}@${version}`;
    const [, hash] = /^sha512-(.*)$/.exec(integrity ?? "") ?? [];
    components.set(purl, {
      ...{ type: "library", "bom-ref": purl, name, version, purl },
      ...(license === undefined ? {} : { licenses: [{ license: { name: license } }] }),
      ...(hash === undefined
        ? {}
        : { hashes: [{ alg: "SHA-512", content: Buffer.from(hash, "base64").toString("hex") }] }),
    });
  }
  for (const { name, version, architecture, sha256 } of debian) {
    const purl = `pkg:deb/debian/${encodeURIComponent(name)}@${encodeURIComponent(version)}?arch=${architecture}`;
    const hashes = [{ alg: "SHA-256", content: sha256 }];
    components.set(purl, { type: "library", "bom-ref": purl, name, version, purl, hashes });
  }
  const component = { type: "application", "bom-ref": NAME, name: NAME, version: commit.version };
  const metadata = { timestamp: isoTime(commit), component };
  const bill = {
    bomFormat: "CycloneDX",
    specVersion: "1.5",
    version: 1,
    metadata,
    components: [...components.values()],
  };
  return `${JSON.stringify(bill, null, 2)}\n`;
}

interface Blob {
  readonly digest: string;
  readonly size: number;
}

interface Layer extends Blob {
  /** The digest of the uncompressed archive. */
  readonly diffId: string;
}

/** Options for an archive that depends only on the files, not on their owners and times. */
const reproducible = ({ time }: Commit): readonly string[] =>
  `--sort=name --mtime=@${time} --owner=0 --group=0 --numeric-owner --format=gnu`.split(" ");

/** Everyone can read, and only root can write. */
const SAME_MODES = "--mode=u+rw,go=u,go-w";

async function writeLayer(
  { rootfs, blobs, commit }: { readonly rootfs: string; readonly blobs: string; readonly commit: Commit },
  content: readonly string[],
): Promise<Layer> {
  const options = [...reproducible(commit), "-cf", "-", "-C", rootfs, ...content];
  const tar = spawn("tar", options, { stdio: ["ignore", "pipe", "inherit"] });
  const ended = new Promise<number | null>((resolve) => tar.once("close", resolve));
  const [plain, packed] = [createHash("sha256"), createHash("sha256")];
  const file = join(blobs, "layer");
  const observed = (hash: typeof plain) =>
    async function* (parts: AsyncIterable<Buffer>) {
      for await (const part of parts) {
        hash.update(part);
        yield part;
      }
    };
  await pipeline(tar.stdout, observed(plain), createGzip(), observed(packed), createWriteStream(file));
  if ((await ended) !== 0) throw new Error(`tar could not read ${content.join(" ")}`);
  const hex = packed.digest("hex");
  await rename(file, join(blobs, hex));
  const { size } = await stat(join(blobs, hex));
  return { digest: `sha256:${hex}`, size, diffId: `sha256:${plain.digest("hex")}` };
}

async function writeBlob(blobs: string, document: object): Promise<Blob> {
  const bytes = Buffer.from(JSON.stringify(document));
  const hex = createHash("sha256").update(bytes).digest("hex");
  await writeFile(join(blobs, hex), bytes);
  return { digest: `sha256:${hex}`, size: bytes.length };
}

const isoTime = ({ time }: Commit): string => new Date(time * 1_000).toISOString();
const architecture = (): string => ARCHITECTURES[process.arch] ?? process.arch;

const imageConfig = (commit: Commit, diffIds: readonly string[]) => ({
  architecture: architecture(),
  os: "linux",
  created: isoTime(commit),
  config: {
    User: `${USER}:${USER}`,
    ExposedPorts: { "4020/tcp": {} },
    Env: [`PATH=/${HOME}/node_modules/.bin`],
    Entrypoint: ["node"],
    Cmd: ["api/main.ts"],
    WorkingDir: `/${HOME}`,
    StopSignal: "SIGTERM",
    Labels: {
      "org.opencontainers.image.title": NAME,
      "org.opencontainers.image.version": commit.version,
      "org.opencontainers.image.revision": commit.hash,
      "org.opencontainers.image.licenses": "MIT",
    },
  },
  rootfs: { type: "layers", diff_ids: diffIds },
  history: ["Debian", "npm ci --omit=dev", "the committed files"].map((comment) => ({
    created: isoTime(commit),
    comment,
  })),
});

interface Written {
  readonly commit: Commit;
  readonly manifest: Blob;
  readonly config: Blob;
  readonly layers: readonly Layer[];
}

async function writeIndex(layout: string, { commit, manifest, config, layers }: Written): Promise<void> {
  const write = (name: string, document: object) => writeFile(join(layout, name), JSON.stringify(document));
  const path = ({ digest }: Blob) => `blobs/${digest.replace(":", "/")}`;
  await write("oci-layout", { imageLayoutVersion: "1.0.0" });
  await write("index.json", {
    schemaVersion: 2,
    mediaType: "application/vnd.oci.image.index.v1+json",
    manifests: [
      {
        mediaType: "application/vnd.oci.image.manifest.v1+json",
        ...manifest,
        platform: { architecture: architecture(), os: "linux" },
        annotations: { "org.opencontainers.image.ref.name": commit.tag },
      },
    ],
  });
  // For Docker before 25, which does not read OCI layouts.
  await write("manifest.json", [
    { Config: path(config), RepoTags: [`${NAME}:${commit.tag}`], Layers: layers.map(path) },
  ]);
}

async function run(command: string, args: readonly string[], cwd = ROOT): Promise<void> {
  await call(command, args, { cwd, maxBuffer: MOST_OUTPUT }).catch((error: { stderr?: string; message: string }) => {
    throw new Error(`${command} ${args[0]} failed: ${error.stderr?.trim() || error.message}`);
  });
}

if (import.meta.main) {
  const { values } = parseArgs({ options: { into: { type: "string", default: join(ROOT, "images") } } });
  const { archive, sbom, digest, tag } = await buildImage(values.into);
  console.log(`${NAME}:${tag}\n${digest}\n${archive}\n${sbom}`);
}
