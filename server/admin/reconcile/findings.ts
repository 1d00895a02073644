/** Where a rail's own books and the payments' records disagree. */
export interface RailFinding {
  /** The payment, or what the rail calls it. */
  readonly id: string;
  readonly what: string;
  readonly expected: string;
  readonly found: string;
  /** The rail acts before its effect is recorded; never the other way round, if payments are read first. */
  readonly mayBeInFlight: boolean;
}

export const findingText = ({ expected, found, id, what }: RailFinding): string =>
  `${id}: ${what}; expected ${expected}, found ${found}`;

export const cents = (amount: number): string => `${(amount / 100).toFixed(2)} USD`;

export function grouped<T>(
  items: readonly T[],
  keyOf: (item: T) => string,
): ReadonlyMap<string, readonly T[]> {
  const groups = new Map<string, T[]>();
  for (const item of items) {
    const group = groups.get(keyOf(item));
    if (group === undefined) groups.set(keyOf(item), [item]);
    else group.push(item);
  }
  return groups;
}
