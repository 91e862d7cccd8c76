const SHIFT = `const by = Number(process.env.CLOCK_OFFSET_MS); const Real = Date;
globalThis.Date = class Date extends Real {
  constructor(...given) { if (given.length === 0) super(Real.now() + by); else super(...given); }
  static now() { return Real.now() + by; }
};`;

/** The environment of a process whose clock is off by so many milliseconds; its timers run as always. */
export const clockOffBy = (milliseconds: number): Readonly<Record<string, string>> =>
  milliseconds === 0
    ? {}
    : {
        CLOCK_OFFSET_MS: String(milliseconds),
        NODE_OPTIONS: `--import=data:text/javascript;base64,${Buffer.from(SHIFT).toString("base64")}`,
      };
