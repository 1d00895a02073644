import type { AgentAccess, BundledKey } from "../../src/domain/agent/access.ts";
import type { AgentCommand } from "../../src/domain/agent/commands.ts";
import { handle } from "../../src/domain/agent/handle.ts";
import type { AgentState } from "../../src/domain/agent/state.ts";
import { type LifeDomain, SOUND_LIFE } from "../../test/domain/life/run.ts";
import { MINUTE } from "../../test/domain/support/actor.ts";
import { FIRST_KEY } from "../../test/domain/support/agent.ts";
import type { Mutant } from "./mutant.ts";

/** Ways to put a fault into an agent's actor. */

type Kind = AgentCommand["kind"];
type LifeMutant = Mutant<LifeDomain>;

const handling = (faulty: typeof handle): LifeDomain => ({ ...SOUND_LIFE, handle: faulty });

/** And after a command of this kind, something else is done to the state. */
const after = (kind: Kind, change: (state: AgentState, was: AgentState, now: number) => void): LifeDomain =>
  handling((state, command, now) => {
    const was = structuredClone(state);
    const reply = handle(state, command, now);
    if (command.kind === kind) change(state, was, now);
    return reply;
  });

/** Commands of these kinds are decided as if the state were another; what they do not change stays as it was. */
const deciding = (
  kinds: readonly Kind[],
  as: (state: AgentState, command: AgentCommand) => Partial<AgentState>,
): LifeDomain =>
  handling((state, command, now) => {
    if (!kinds.includes(command.kind)) return handle(state, command, now);
    const was = structuredClone(state);
    const pretended = as(structuredClone(state), command);
    const before = structuredClone(pretended);
    Object.assign(state, pretended);
    const reply = handle(state, command, now);
    Object.assign(state, restored(was, state, before));
    return reply;
  });

function restored(was: AgentState, is: AgentState, pretended: Partial<AgentState>): Partial<AgentState> {
  const names = Object.keys(pretended) as (keyof AgentState)[];
  const unchanged = names.filter((name) => JSON.stringify(is[name]) === JSON.stringify(pretended[name]));
  return Object.fromEntries(unchanged.map((name) => [name, was[name]]));
}

const withAccess = ({ access }: AgentState, change: Partial<AgentAccess>): Partial<AgentState> => ({
  access: { ...access, ...change },
});

const withBundled = (state: AgentState, change: Partial<BundledKey>): Partial<AgentState> =>
  withAccess(state, { bundled: { ...state.access.bundled, ...change } });

const live = (): Partial<AgentState> => ({ archivedAt: null });

/** The key is accepted wherever this holds. */
const accepting = (when: (state: AgentState, keyId: string) => boolean): LifeDomain =>
  handling((state, command, now) => {
    const reply = handle(state, command, now);
    const accepts = command.kind === "authenticate" && when(state, command.keyId);
    return accepts ? { kind: "authenticated", firstUsedAt: 1 } : reply;
  });

/** A machine's archives are decided as if the state were another. */
const archivingAs = (as: (state: AgentState) => Partial<AgentState>): LifeDomain =>
  deciding(["archive"], (state, command) =>
    command.kind === "archive" && command.by.type === "organization_key" ? as(state) : {},
  );

/** A machine's archives are decided by a clock that is wrong. */
const archivingAt = (when: (now: number) => number): LifeDomain =>
  handling((state, command, now) =>
    handle(state, command, command.kind === "archive" && command.by.type !== "user" ? when(now) : now),
  );

const rollingOver = (lose: (state: AgentState) => Partial<AgentState>): LifeDomain => ({
  ...SOUND_LIFE,
  rollOver: (state) => SOUND_LIFE.rollOver({ ...state, ...lose(state) }),
});

const keys: readonly LifeMutant[] = [
  {
    fault: "a revoked key is accepted until the agent has another",
    complaint: "the use of akey",
    domain: () => accepting(({ access, archivedAt }) => archivedAt === null && access.activeKeyId === null),
  },
  {
    fault: "any key that the agent ever had is accepted",
    complaint: "the use of akey",
    domain: () => accepting(({ archivedAt }, keyId) => archivedAt === null && keyId === FIRST_KEY),
  },
  {
    fault: "an archived agent's key is accepted",
    complaint: "the use of akey",
    domain: () => accepting(({ archivedAt }) => archivedAt !== null),
  },
  {
    fault: "archiving leaves the key",
    complaint: "the active key",
    domain: () => after("archive", (state, was) => void (state.access.activeKeyId = was.access.activeKeyId)),
  },
  {
    fault: "minting replaces the active key",
    complaint: "second key",
    domain: () =>
      deciding(["mint_key"], (state, command) =>
        command.kind === "mint_key" && command.keyId !== state.access.activeKeyId
          ? withAccess(state, { activeKeyId: null })
          : {},
      ),
  },
  {
    fault: "minting brings an archived agent a key",
    complaint: "a key for an archived agent",
    domain: () => deciding(["mint_key"], live),
  },
  {
    fault: "a key that is minted again by the engine is a second one",
    complaint: "a key that is minted again",
    domain: () =>
      handling((state, command, now) =>
        command.kind === "mint_key" && command.keyId === state.access.activeKeyId
          ? { kind: "key_exists" }
          : handle(state, command, now),
      ),
  },
  {
    fault: "a person's hand on the keys is forgotten",
    complaint: "whether a person touched its keys",
    domain: () => after("revoke_key", (state) => void (state.access.touchedByPerson = false)),
  },
  {
    fault: "the first use is stamped anew each time",
    complaint: "when a key was first used",
    domain: () => deciding(["authenticate"], (state) => withAccess(state, { authenticatedAt: null })),
  },
];

const delivery: readonly LifeMutant[] = [
  {
    fault: "a proof is stamped in the window",
    complaint: "a proof of non-delivery",
    domain: () => deciding(["prove_non_delivery"], (state) => withBundled(state, { deliverableUntil: 0 })),
  },
  {
    fault: "a proof is stamped for any lineage",
    complaint: "a proof of non-delivery",
    domain: () =>
      deciding(["prove_non_delivery"], (state, command) =>
        command.kind === "prove_non_delivery" ? withBundled(state, { lineageId: command.lineageId }) : {},
      ),
  },
  {
    fault: "a later replay moves the proof",
    complaint: "the proof of non-delivery",
    domain: () => deciding(["prove_non_delivery"], (state) => withBundled(state, { provenAt: null })),
  },
  {
    fault: "the key is delivered at the end of the window exactly",
    complaint: "whether a key was delivered again",
    domain: () => ({ ...SOUND_LIFE, isDeliverable: (until, now) => now <= until }),
  },
  {
    fault: "the key is delivered as long as nothing has erased it, whatever the time",
    complaint: "whether a key was delivered again",
    domain: () => ({ ...SOUND_LIFE, isDeliverable: (until, now) => now < until + MINUTE }),
  },
];

const BY_MACHINE = "an archive by a machine";

const machineArchive: readonly LifeMutant[] = [
  {
    fault: "a machine archives an agent of another lineage",
    complaint: BY_MACHINE,
    domain: () =>
      deciding(["archive"], (state, command) =>
        command.kind === "archive" && command.by.type === "organization_key"
          ? withBundled(state, { lineageId: command.by.lineageId })
          : {},
      ),
  },
  {
    fault: "a machine archives in the window",
    complaint: BY_MACHINE,
    domain: () => archivingAs((state) => withBundled(state, { deliverableUntil: 0 })),
  },
  {
    fault: "the window is over a millisecond early",
    complaint: BY_MACHINE,
    domain: () => archivingAt((now) => now + 1),
  },
  {
    fault: "a machine archives without a proof",
    complaint: BY_MACHINE,
    domain: () => archivingAs((state) => withBundled(state, { provenAt: 1 })),
  },
  {
    fault: "a machine archives an agent that has used its key",
    complaint: BY_MACHINE,
    domain: () => archivingAs((state) => withAccess(state, { authenticatedAt: null })),
  },
  {
    fault: "a machine archives an agent whose keys a person has touched",
    complaint: BY_MACHINE,
    domain: () => archivingAs((state) => withAccess(state, { touchedByPerson: false })),
  },
  {
    fault: "a balance that can't be read counts as zero",
    complaint: BY_MACHINE,
    domain: () =>
      handling((state, command, now) => {
        if (command.kind !== "archive" || command.by.type === "user") return handle(state, command, now);
        const { balance } = command.by;
        const read = balance === "unreadable" ? "zero" : balance;
        return handle(state, { ...command, by: { ...command.by, balance: read } }, now);
      }),
  },
];

const archive: readonly LifeMutant[] = [
  {
    fault: "an archived agent is renamed",
    complaint: "an archived agent's new name",
    domain: () => deciding(["rename"], live),
  },
  {
    fault: "archiving again is archiving anew",
    complaint: "once more",
    domain: () => deciding(["archive"], live),
  },
  {
    fault: "another lineage is sent that the agent is archived",
    complaint: "once more",
    domain: () =>
      handling((state, command, now) =>
        command.kind === "archive" && state.archivedAt !== null
          ? { kind: "archive", changed: false }
          : handle(state, command, now),
      ),
  },
  {
    fault: "the wallet of an agent that lives counts as detached",
    complaint: "is detached",
    domain: () => after("confirm_detached", (state) => void (state.walletDetached = true)),
  },
];

const followers: readonly LifeMutant[] = [
  {
    fault: "an older word of the ledger is believed",
    complaint: "its status",
    domain: () => deciding(["follow_status"], () => ({ statusRevision: -1 })),
  },
  {
    fault: "the ledger does not receive a revoked key",
    complaint: "the ledger does not receive",
    domain: () => after("revoke_key", (state, was) => void (state.ledgerRevision = was.ledgerRevision)),
  },
  {
    fault: "the ledger does not receive an archive",
    complaint: "the ledger does not receive",
    domain: () => after("archive", (state, was) => void (state.ledgerRevision = was.ledgerRevision)),
  },
  {
    fault: "the ledger is taken to have received what it has not",
    complaint: "the revision that the ledger follows",
    domain: () => after("confirm_followed", (state) => void (state.followedRevision = state.revision)),
  },
  {
    fault: "an archive is not published",
    complaint: "what is published of it",
    domain: () => after("archive", (state, was) => void (state.outbox = was.outbox)),
  },
  {
    fault: "an archive is published twice",
    complaint: "what is published of it",
    domain: () =>
      after("archive", (state, was) => {
        if (state.outbox.length > was.outbox.length) state.outbox = [...state.outbox, ...state.outbox];
      }),
  },
  {
    fault: "any confirmation of the record empties the outbox",
    complaint: "what is published of it",
    domain: () => after("confirm_record", (state) => void (state.outbox = [])),
  },
  {
    fault: "no confirmation empties the outbox",
    complaint: "what is published of it",
    domain: () => after("confirm_record", (state, was) => void (state.outbox = was.outbox)),
  },
  {
    fault: "an archive changes the record under its old revision",
    complaint: "what one revision shows",
    domain: () => after("archive", (state, was) => void (state.revision = was.revision)),
  },
  {
    fault: "an older confirmation takes a newer one back",
    complaint: "the revision that the record shows",
    domain: () =>
      handling((state, command, now) => {
        if (command.kind === "confirm_record") state.confirmedRevision = 0;
        return handle(state, command, now);
      }),
  },
  {
    fault: "a roll-over forgets the proof",
    complaint: "a roll-over lost something",
    domain: () => rollingOver((state) => withBundled(state, { provenAt: null })),
  },
  {
    fault: "a roll-over forgets what is not published yet",
    complaint: "a roll-over lost something",
    domain: () => rollingOver(() => ({ outbox: [] })),
  },
  {
    fault: "a roll-over forgets the first use",
    complaint: "a roll-over lost something",
    domain: () => rollingOver((state) => withAccess(state, { authenticatedAt: null })),
  },
];

/** Faults in an agent's keys and life. */
export const lifeMutants: readonly LifeMutant[] = [
  ...keys,
  ...delivery,
  ...machineArchive,
  ...archive,
  ...followers,
];
