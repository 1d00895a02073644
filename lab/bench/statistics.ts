/** The value that a part of the sorted values does not exceed. */
export function percentile(sorted: readonly number[], part: number): number {
  const index = Math.min(sorted.length - 1, Math.ceil(sorted.length * part) - 1);
  return sorted[Math.max(0, index)] ?? 0;
}

/** Of an even number of values, the mean of the two in the middle; NaN of none. */
export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = Math.floor(sorted.length / 2);
  const upper = sorted[middle] ?? Number.NaN;
  return sorted.length % 2 === 1 ? upper : ((sorted[middle - 1] ?? Number.NaN) + upper) / 2;
}
