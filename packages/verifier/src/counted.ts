/** 1 entry, 2 entries. @param one the singular; its plural has an s, unless it is given */
export const counted = (count: number, one: string, many = `${one}s`): string => `${count} ${count === 1 ? one : many}`;
