/** What clients have seen of payments and caps, and what follows from it alone: nothing here knows the service. */

/** A payment that was let through; times are the clients' own, in epoch milliseconds. */
export interface Accepted {
  readonly id: string;
  readonly teamId: string;
  readonly amountCents: number;
  /** It was accepted at some time between these. */
  readonly sentAt: number;
  readonly acceptedBy: number;
  /** Its amount is in use at least until then; Infinity: for good. */
  readonly usedUntil: number;
}

/** A cap that the owner has set, in the order in which they were set. */
export interface SetCap {
  /** A team's id, or "project". */
  readonly level: string;
  /** Null: no cap. */
  readonly capCents: number | null;
  readonly sentAt: number;
  /** From then on it was in force; Infinity: it is unknown whether it ever was. */
  readonly appliedBy: number;
}

/**
 * Payments that can't have fitted, each in a line. For each accepted payment: what was certainly in use beside it, all the time
 * in which it may have been accepted, against the highest cap that may have been in force in that time. So it never blames a
 * service that did right, and a cap that is passed by more than what is under way at one moment is seen.
 */
export function passedCaps(accepted: readonly Accepted[], caps: readonly SetCap[]): readonly string[] {
  return accepted.flatMap((payment) =>
    [payment.teamId, "project"].flatMap((level) => {
      const cap = highestCap(caps, level, payment);
      if (cap === null) return [];
      const beside = accepted.filter(
        (other) => other !== payment && isCertainlyBeside(other, payment, level),
      );
      const used = beside.reduce((sum, { amountCents }) => sum + amountCents, 0);
      if (used + payment.amountCents <= cap) return [];
      return [
        `${payment.id}: ${String(payment.amountCents)} with ${String(used)} used, under a cap of ${String(cap)} (${level})`,
      ];
    }),
  );
}

const isCertainlyBeside = (other: Accepted, payment: Accepted, level: string): boolean =>
  (level === "project" || other.teamId === level) &&
  other.acceptedBy <= payment.sentAt &&
  other.usedUntil >= payment.acceptedBy;

/** The highest that may have been in force while it was accepted; null: there may have been none. */
function highestCap(caps: readonly SetCap[], level: string, payment: Accepted): number | null {
  const own = caps.filter((cap) => cap.level === level && cap.sentAt <= payment.acceptedBy);
  const newestBefore = own.findLastIndex(({ appliedBy }) => appliedBy <= payment.sentAt);
  if (newestBefore < 0) return null;
  const candidates = own
    .filter(({ appliedBy }, index) => index >= newestBefore || appliedBy === Infinity)
    .map(({ capCents }) => capCents);
  return candidates.includes(null) ? null : Math.max(...candidates.map((cap) => cap ?? 0));
}
