/** Ends the pause of somebody who works now and then. */
export interface Bell {
  /** Ends the pause; the next one, if it has not begun. */
  ring(): void;
  /** Resolves after `ms` milliseconds, or as soon as it has rung since the last pause ended. */
  wait(ms: number): Promise<void>;
}

export function createBell(): Bell {
  let hasRung = false;
  let wake = () => {};
  return {
    ring() {
      hasRung = true;
      wake();
    },
    async wait(ms) {
      if (!hasRung)
        await new Promise<void>((resolve) => {
          const timer = setTimeout(resolve, ms);
          wake = () => {
            clearTimeout(timer);
            resolve();
          };
        });
      hasRung = false;
    },
  };
}
