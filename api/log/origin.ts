/** Where a generation of the log is served, below the service's address. */
export const logPath = (generation: number): string => (generation === 1 ? "/log" : `/log/${generation}`);

/** The log's name: its address without the scheme (C2SP tlog-checkpoint). */
export const logOrigin = (baseUrl: string, generation: number): string =>
  `${new URL(baseUrl).host}${logPath(generation)}`;
