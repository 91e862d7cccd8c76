/**
 * Returns a count with its noun: 1 entry, 2 entries. @param one the singular; the plural adds an s unless it is given
 */
export const counted = (count: number, one: string, many = `${one}s`): string => `${count} ${count === 1 ? one : many}`;
