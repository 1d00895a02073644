import type { ManagementPrincipal } from "../../identity/principals.ts";
import type { Result } from "../../domain/result.ts";
import { ok } from "../../domain/result.ts";
import { dailyCreatesId } from "../../store/organization-key-documents.ts";
import type { Created } from "./create.ts";
import type { DailyCreates, QuotaSlot } from "./daily-creates.ts";

/** Slots under the daily limit, as creates take them and let go of them. */
export class CreateSlots {
  readonly #dailyCreates: DailyCreates;
  readonly #clock: () => Date;

  constructor(dailyCreates: DailyCreates, clock: () => Date) {
    this.#dailyCreates = dailyCreates;
    this.#clock = clock;
  }

  /** People have no daily create limit. */
  async take(principal: ManagementPrincipal, id: string): Promise<Result<QuotaSlot | null>> {
    if (principal.type === "session") return ok(null);
    return this.#dailyCreates.take(principal, id, this.#clock());
  }

  /** The slot of a discarded create is free for its replacement. */
  async release(principal: ManagementPrincipal, createdId: string): Promise<void> {
    if (principal.type === "session") return;
    const dayId = dailyCreatesId(principal.lineageId, this.#clock());
    await this.#dailyCreates.release({ dayId, createdId });
  }

  /** A refused create releases its slot; so does a failed one, and its replay takes another. */
  async releasing<R, M>(
    quotaSlot: QuotaSlot | null,
    work: () => Promise<Result<Created<R, M>> | "discarded" | "slot_lost">,
  ) {
    try {
      const result = await work();
      // A lost slot may be another call's by now, under the same id.
      const ownsSlot = quotaSlot !== null && result !== "slot_lost";
      // Slots are also released for a create that another call finished: that one may have committed with a slot of
      // the day before.
      if (ownsSlot && !(result !== "discarded" && result.ok && !result.value.replayed))
        await this.#dailyCreates.release(quotaSlot);
      return result;
    } catch (error) {
      // The slot is reclaimed when it is needed, if the database is out of reach for this too.
      if (quotaSlot !== null) await this.#dailyCreates.release(quotaSlot).catch(() => undefined);
      throw error;
    }
  }
}
