import type { AgentCommand, AgentReply } from "../../../src/domain/agent/commands.ts";
import { decide, handle } from "../../../src/domain/agent/decide.ts";
import type { AgentEvent } from "../../../src/domain/agent/evolve.ts";
import { evolve } from "../../../src/domain/agent/evolve.ts";
import type { AgentState } from "../../../src/domain/agent/state.ts";
import { throughJson } from "../model/simulation.ts";
import { MINUTE } from "../support/actor.ts";
import { type LifeSubject, realSubject } from "./simulation.ts";

type Handle = LifeSubject["handle"];

const handling = (mutant: Handle): LifeSubject => ({ ...realSubject, handle: mutant });

/** Decides one kind of command as if the agent were another. */
const deceived = (
  kind: AgentCommand["kind"],
  as: (state: AgentState, command: AgentCommand) => AgentState,
): LifeSubject =>
  handling((state, command, now) => {
    if (command.kind !== kind) return handle(state, command, now);
    const { events, reply } = decide(as(state, command), command, now);
    for (const event of events) evolve(state, event, now);
    return reply;
  });

/** Applies events with something done after each. */
const evolving = (after: (state: AgentState, event: AgentEvent) => void): LifeSubject =>
  handling((state, command, now) => {
    const { events, reply } = decide(state, command, now);
    for (const event of events) {
      evolve(state, event, now);
      after(state, event);
    }
    return reply;
  });

/** Decides about an archive by a clock that is wrong. */
const archivingAt = (by: "user" | "organization_key", when: (now: number) => number): LifeSubject =>
  handling((state, command, now) => {
    if (command.kind !== "archive" || command.by.type !== by) return handle(state, command, now);
    const { events, reply } = decide(state, command, when(now));
    for (const event of events) evolve(state, event, now);
    return reply;
  });

type Access = NonNullable<AgentState["access"]>;
type Bundled = NonNullable<Access["bundled"]>;

const withAccess = (state: AgentState, change: Partial<Access>): AgentState =>
  state.access === undefined ? state : { ...state, access: { ...state.access, ...change } };

const withBundled = (state: AgentState, change: Partial<Bundled>): AgentState => {
  const bundled = state.access?.bundled ?? null;
  return bundled === null ? state : withAccess(state, { bundled: { ...bundled, ...change } });
};

const isArchive = (event: AgentEvent): boolean =>
  event.type === "lifecycle_changed" && event.lifecycle === "archived";

const asActive = (state: AgentState): AgentState =>
  state.lifecycle === "archived" ? { ...state, lifecycle: "active" } : state;

/** Says that the key is accepted wherever this holds. */
const accepting = (when: (state: AgentState, keyId: string) => boolean): LifeSubject =>
  handling((state, command, now): AgentReply => {
    const reply = handle(state, command, now);
    const accepts = command.kind === "authenticate" && when(state, command.keyId);
    return accepts ? { kind: "authenticated", accepted: true } : reply;
  });

export interface LifeMutant {
  readonly fault: string;
  /** What the auditor says of it. */
  readonly complaint: string;
  readonly subject: LifeSubject;
}

/** Faults that a careless service has, or that a slip of the hand would make of ours. */
export const mutants: readonly LifeMutant[] = [
  {
    fault: "a revoked key is accepted until the agent has another",
    complaint: 'authenticate was answered "authenticated true"',
    subject: accepting((state) => state.lifecycle !== "archived" && state.access?.activeKeyId === null),
  },
  {
    fault: "any key that the agent ever had is accepted",
    complaint: 'authenticate was answered "authenticated true"',
    subject: accepting((state, keyId) => state.lifecycle !== "archived" && keyId === "akey_0"),
  },
  {
    fault: "an archived agent's key is accepted",
    complaint: 'authenticate was answered "authenticated true"',
    subject: accepting((state) => state.lifecycle === "archived"),
  },
  {
    fault: "archiving leaves the key",
    complaint: "the active key",
    subject: handling((state, command, now) => {
      const keyId = state.access?.activeKeyId ?? null;
      const reply = handle(state, command, now);
      if (command.kind === "archive" && state.access !== undefined) state.access.activeKeyId = keyId;
      return reply;
    }),
  },
  {
    fault: "minting replaces the active key",
    complaint: "mint_key was answered",
    subject: deceived("mint_key", (state) => withAccess(state, { activeKeyId: null })),
  },
  {
    fault: "minting brings an archived agent a key",
    complaint: "mint_key was answered",
    subject: deceived("mint_key", asActive),
  },
  {
    fault: "the record is believed before the actor about which key is active",
    complaint: "_key was answered",
    subject: handling((state, command, now) => {
      if (command.kind !== "mint_key" && command.kind !== "revoke_key") return handle(state, command, now);
      const believed = withAccess(state, { activeKeyId: command.recordedKeyId });
      const { events, reply } = decide(believed, command, now);
      for (const event of events) evolve(state, event, now);
      return reply;
    }),
  },
  {
    fault: "a person's hand on the keys is forgotten",
    complaint: "whether a person touched its keys",
    subject: evolving((state, event) => {
      if (event.type === "key_changed" && state.access !== undefined) state.access.touchedByPerson = false;
    }),
  },
  {
    fault: "the first use is stamped anew each time",
    complaint: "when a key was first used",
    subject: handling((state, command, now) => {
      const reply = handle(state, command, now);
      if (reply.kind === "authenticated" && reply.accepted && state.access !== undefined)
        state.access.authenticatedAt = now;
      return reply;
    }),
  },
  {
    fault: "a proof is stamped in the window",
    complaint: "prove_non_delivery was answered",
    subject: deceived("prove_non_delivery", (state) => withBundled(state, { deliverableUntil: 0 })),
  },
  {
    fault: "a proof is stamped for any lineage",
    complaint: "prove_non_delivery was answered",
    subject: deceived("prove_non_delivery", (state, command) =>
      command.kind === "prove_non_delivery" ? withBundled(state, { lineageId: command.lineageId }) : state,
    ),
  },
  {
    fault: "a later replay moves the proof",
    complaint: "the proof of non-delivery",
    subject: deceived("prove_non_delivery", (state) => withBundled(state, { provenAt: null })),
  },
  {
    fault: "the key is delivered at the end of the window exactly",
    complaint: "a key was delivered after the window",
    subject: { ...realSubject, isDeliverable: (until, now) => now <= until },
  },
  {
    fault: "the key is delivered as long as nothing has erased it, whatever the time",
    complaint: "a key was delivered after the window",
    subject: { ...realSubject, isDeliverable: (until, now) => now < until + MINUTE },
  },
  {
    fault: "a machine archives an agent of another lineage",
    complaint: "archive was answered",
    subject: deceived("archive", (state, command) =>
      command.kind === "archive" && command.by.type === "organization_key"
        ? withBundled(state, { lineageId: command.by.lineageId })
        : state,
    ),
  },
  {
    fault: "a machine archives in the window",
    complaint: "archive was answered",
    subject: deceived("archive", (state) => withBundled(state, { deliverableUntil: 0 })),
  },
  {
    fault: "the window is over a millisecond early",
    complaint: "archive was answered",
    subject: archivingAt("organization_key", (now) => now + 1),
  },
  {
    fault: "a machine archives without a proof",
    complaint: "archive was answered",
    subject: deceived("archive", (state) => withBundled(state, { provenAt: 1 })),
  },
  {
    fault: "a machine archives an agent that has used its key",
    complaint: "archive was answered",
    subject: deceived("archive", (state) => withAccess(state, { authenticatedAt: null })),
  },
  {
    fault: "a machine archives an agent that has asked for payments",
    complaint: "archive was answered",
    subject: deceived("archive", (state) => ({ ...state, sequence: 0 })),
  },
  {
    fault: "a machine archives an agent whose keys a person has touched",
    complaint: "archive was answered",
    subject: deceived("archive", (state) => withAccess(state, { touchedByPerson: false })),
  },
  {
    fault: "a balance that can't be read counts as zero",
    complaint: "archive was answered",
    subject: handling((state, command, now) => {
      if (command.kind !== "archive" || command.by.type === "user") return handle(state, command, now);
      const balance = command.by.balance === "unreadable" ? "zero" : command.by.balance;
      return handle(state, { ...command, by: { ...command.by, balance } }, now);
    }),
  },
  {
    fault: "archiving leaves what is on hold",
    complaint: "reserved against the sum",
    subject: deceived("archive", (state) => ({ ...state, open: {} })),
  },
  {
    fault: "archiving denies what is on hold and keeps its reservation",
    complaint: "reserved against the sum",
    subject: evolving((state, event) => {
      const denied = event.type === "payment_changed" && event.payment.denial?.code === "AGENT_ARCHIVED";
      if (denied) state.usage.reservedCents += event.payment.request.amountCents;
    }),
  },
  {
    fault: "archiving calls expired payments denied",
    complaint: "the status of",
    subject: archivingAt("user", (now) => now - 10 * MINUTE),
  },
  {
    fault: "a payment is accepted after the archive",
    complaint: "pay was answered",
    subject: deceived("pay", asActive),
  },
  {
    fault: "resuming brings an archived agent back",
    complaint: "resume was answered",
    subject: deceived("resume", (state) =>
      state.lifecycle === "archived" ? { ...state, lifecycle: "paused" } : state,
    ),
  },
  {
    fault: "an archived agent is renamed",
    complaint: "rename was answered",
    subject: deceived("rename", asActive),
  },
  {
    fault: "archiving again is archiving anew",
    complaint: "archive was answered",
    subject: deceived("archive", asActive),
  },
  {
    fault: "pausing what is paused fires again",
    complaint: "pause was answered",
    subject: deceived("pause", (state) =>
      state.lifecycle === "paused" ? { ...state, lifecycle: "active" } : state,
    ),
  },
  {
    fault: "a change of the lifecycle is not told",
    complaint: "left the outbox and is not in the journal",
    subject: evolving((state, event) => {
      if (event.type === "lifecycle_changed") state.outbox?.pop();
    }),
  },
  {
    fault: "a change of the lifecycle is told twice",
    complaint: "an event",
    subject: evolving((state, event) => {
      const last = state.outbox?.at(-1);
      if (event.type === "lifecycle_changed" && last !== undefined)
        state.outbox?.push({ ...last, id: `${last.id}-again` });
    }),
  },
  {
    fault: "events have one id for each type",
    complaint: "an event",
    subject: evolving((state, event) => {
      const last = state.outbox?.pop();
      if (last !== undefined)
        state.outbox?.push(event.type === "lifecycle_changed" ? { ...last, id: `evt_${last.type}` } : last);
    }),
  },
  {
    fault: "any confirmation of the record empties the outbox",
    complaint: "left the outbox and is not in the journal",
    subject: evolving((state, event) => {
      if (event.type === "summary_confirmed") state.outbox = [];
    }),
  },
  {
    fault: "no confirmation empties the outbox",
    complaint: "stays in the outbox for ever",
    subject: handling((state, command, now) => {
      const outbox = [...(state.outbox ?? [])];
      const reply = handle(state, command, now);
      if (command.kind === "confirm_summary") state.outbox = outbox;
      return reply;
    }),
  },
  {
    fault: "an archive changes the record under its old revision",
    complaint: "one revision shows two things",
    subject: evolving((state, event) => {
      if (isArchive(event)) state.revision -= 1;
    }),
  },
  {
    fault: "the wallet of an agent that lives counts as detached",
    complaint: "whether the wallet is detached",
    subject: handling((state, command, now) => {
      if (command.kind === "confirm_detached") state.walletDetached = true;
      return handle(state, command, now);
    }),
  },
  {
    fault: "continue-as-new forgets the proof",
    complaint: "continue-as-new lost something",
    subject: { ...realSubject, rollOver: (state) => withBundled(throughJson(state), { provenAt: null }) },
  },
  {
    fault: "continue-as-new forgets what is not told yet",
    complaint: "continue-as-new lost something",
    subject: { ...realSubject, rollOver: (state) => ({ ...throughJson(state), outbox: [] }) },
  },
];
