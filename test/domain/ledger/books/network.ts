import type { RailBooks } from "../../../../src/domain/ledger/books.ts";
import type { NetworkAct } from "./actions.ts";

/** A payment on its network: what is true, and everything that a reader can have seen before. */
export class NetworkPayment {
  /** By authorization; the last one is how it is now. */
  readonly #versions = new Map<string, RailBooks[]>();

  now(authorization: string): RailBooks {
    const none = {
      authorization,
      requests: 0,
      authorizedMc: 0,
      capturedMc: 0,
      creditedMc: 0,
      recalledMc: 0,
      disputedMc: 0,
      isOpen: false,
    };
    return this.#versions.get(authorization)?.at(-1) ?? none;
  }

  get authorizations(): readonly string[] {
    return [...this.#versions.keys()];
  }

  /** The network has counted a request, and granted so much with it. */
  counted(authorization: string, grantedMc: number): void {
    const { authorizedMc, isOpen, requests } = this.now(authorization);
    this.#become(authorization, {
      requests: requests + 1,
      authorizedMc: authorizedMc + grantedMc,
      isOpen: isOpen || grantedMc > 0,
    });
  }

  act(authorization: string, what: NetworkAct, mc: number): void {
    const now = this.now(authorization);
    const { authorizedMc, capturedMc, creditedMc, disputedMc, recalledMc } = now;
    switch (what) {
      case "capture":
        return this.#become(authorization, { capturedMc: capturedMc + mc });
      case "capture_and_close":
        return this.#become(authorization, { capturedMc: capturedMc + mc, isOpen: false });
      case "release_part":
        return this.#become(authorization, {
          authorizedMc: Math.min(authorizedMc, Math.max(capturedMc, authorizedMc - mc)),
        });
      case "close":
        return this.#become(authorization, { isOpen: false });
      case "refund":
        return this.#become(authorization, { creditedMc: creditedMc + mc });
      case "recall":
        return this.#become(authorization, { recalledMc: Math.min(creditedMc, recalledMc + mc) });
      case "dispute":
        return this.#become(authorization, { disputedMc: disputedMc + mc });
    }
  }

  /** Reports of all authorizations, each so many versions behind. */
  read(behind: readonly number[]): readonly RailBooks[] {
    return [...this.#versions.values()].flatMap((versions, place) => {
      const report = versions.at(Math.max(0, versions.length - 1 - (behind[place] ?? 0)));
      return report === undefined ? [] : [report];
    });
  }

  /** The number of a version, by which the newest of those seen is known. */
  numberOf(report: RailBooks): number {
    return this.#versions.get(report.authorization)?.lastIndexOf(report) ?? -1;
  }

  #become(authorization: string, change: Partial<RailBooks>): void {
    const versions = this.#versions.get(authorization) ?? [];
    this.#versions.set(authorization, [...versions, { ...this.now(authorization), ...change }]);
  }
}
