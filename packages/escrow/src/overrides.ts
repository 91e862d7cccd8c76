/** Defines own members on an object, hiding existing ones; returns a function that restores them. */
export function override(target: object, members: Record<string, unknown>): () => void {
  const hidden = Object.keys(members).map((name) => [name, Object.getOwnPropertyDescriptor(target, name)] as const);
  for (const [name, member] of Object.entries(Object.getOwnPropertyDescriptors(members)))
    Object.defineProperty(target, name, { ...member, configurable: true });
  return () => {
    for (const [name, descriptor] of hidden) {
      if (descriptor === undefined) Reflect.deleteProperty(target, name);
      else Object.defineProperty(target, name, descriptor);
    }
  };
}
