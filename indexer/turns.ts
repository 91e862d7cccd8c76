/** Lets one work begin when the one before has ended. */
export interface Turns {
  readonly take: <T>(work: () => Promise<T>) => Promise<T>;
}

export function createTurns(): Turns {
  let last: Promise<unknown> = Promise.resolve();
  return {
    take: (work) => {
      const turn = last.then(work);
      last = turn.catch(() => undefined);
      return turn;
    },
  };
}
