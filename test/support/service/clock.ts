const shift = (milliseconds: number): string => `const Real = Date;
globalThis.Date = class Date extends Real {
  constructor(...given) { if (given.length === 0) super(Real.now() + ${milliseconds}); else super(...given); }
  static now() { return Real.now() + ${milliseconds}; }
};`;

/** The environment of a process whose clock is off by this amount. Its timers run normally. */
export const clockOffBy = (milliseconds: number): Readonly<Record<string, string>> =>
  milliseconds === 0
    ? {}
    : {
        NODE_OPTIONS: `--import=data:text/javascript;base64,${Buffer.from(shift(milliseconds)).toString("base64")}`,
      };
