/** In place of Ponder's middleware, which nothing here uses. */
export const graphql = undefined;
