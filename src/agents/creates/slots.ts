import type { ManagementPrincipal } from "../../identity/principals.ts";
import type { Result } from "../../domain/result.ts";
import { ok } from "../../domain/result.ts";
import { dailyCreatesId } from "../../store/organization-key-documents.ts";
import type { Created } from "./create.ts";
import type { DailyCreates, QuotaSlot } from "./daily-creates.ts";

export class CreateSlots {
  readonly #dailyCreates: DailyCreates;
  readonly #clock: () => Date;

  constructor(dailyCreates: DailyCreates, clock: () => Date) {
    this.#dailyCreates = dailyCreates;
    this.#clock = clock;
  }

  /** Takes a slot; null for people, who have no daily limit. */
  async take(principal: ManagementPrincipal, id: string): Promise<Result<QuotaSlot | null>> {
    if (principal.type === "session") return ok(null);
    return this.#dailyCreates.take(principal, id, this.#clock());
  }

  /** Releases the slot of a discarded create for its replacement. */
  async release(principal: ManagementPrincipal, createdId: string): Promise<void> {
    if (principal.type === "session") return;
    const dayId = dailyCreatesId(principal.lineageId, this.#clock());
    await this.#dailyCreates.release({ dayId, createdId });
  }

  /** Runs a create, and releases its slot if the create is refused or fails; a replay takes another. */
  async releasing<R, M>(
    quotaSlot: QuotaSlot | null,
    work: () => Promise<Result<Created<R, M>> | "discarded" | "slot_lost">,
  ) {
    try {
      const result = await work();
      // A lost slot may belong to another call by now, under the same id.
      const ownsSlot = quotaSlot !== null && result !== "slot_lost";
      // Also released if another call finished the create, which may have committed with a slot of the day before.
      if (ownsSlot && !(result !== "discarded" && result.ok && !result.value.replayed))
        await this.#dailyCreates.release(quotaSlot);
      return result;
    } catch (error) {
      // If the database is unreachable for the release too, the slot is reclaimed later.
      if (quotaSlot !== null) await this.#dailyCreates.release(quotaSlot).catch(() => undefined);
      throw error;
    }
  }
}
