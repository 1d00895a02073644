import type { Difference } from "./difference.ts";
import type { Reconciled } from "./reconcile.ts";

export const plural = (count: number, noun: string): string =>
  `${String(count)} ${noun}${count === 1 ? "" : "s"}`;

export function reconciledText(result: Reconciled): string {
  const { agents, differences, left, notes, organizations, payments, projects, repaired } = result;
  const read = [
    plural(organizations, "organization"),
    plural(projects, "project"),
    plural(agents, "agent"),
    plural(payments, "payment"),
  ].join(", ");
  const verdict =
    differences.length === 0
      ? "Everything agrees."
      : `${plural(differences.length, "difference")}, ${plural(left.length, "difference")} not repaired.`;
  return [
    ...differences.map((difference) => `${differenceText(difference)}\n`),
    ...repaired.map(({ did, id }) => `repaired ${id}: ${did}`),
    ...notes.map((note) => `note: ${note}`),
    `${read} compared. ${verdict}`,
  ].join("\n");
}

export const differenceText = ({ advice, expected, found, id, kind, of, what }: Difference): string =>
  [
    `${kind}: ${of} ${id}`,
    `  what      ${what}`,
    `  expected  ${expected}`,
    `  found     ${found}`,
    `  to do     ${advice}`,
  ].join("\n");

/** Returns a difference in the machine-readable form. */
export const shownDifference = ({ advice, expected, found, id, kind, of, repair, what }: Difference) => ({
  kind,
  of,
  id,
  what,
  expected,
  found,
  advice,
  repairable: repair !== null,
});

export function reconciledJson(result: Reconciled): string {
  return JSON.stringify({
    ...result,
    differences: result.differences.map(shownDifference),
    left: result.left.map(shownDifference),
  });
}
