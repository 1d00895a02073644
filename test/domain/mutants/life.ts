import { handle } from "../../../src/domain/agent/decide.ts";
import type { AgentState } from "../../../src/domain/agent/state.ts";
import { type Domain, realDomain } from "../../../scripts/simulation/domain.ts";
import { MINUTE } from "../support/actor.ts";
import {
  agents,
  agentsAfter,
  agentsArchivingAt,
  agentsBefore,
  agentsDeciding,
  agentsRollingOver,
  asActive,
  withAccess,
  withBundled,
} from "./faults.ts";
import type { Mutant } from "./mutant.ts";

/** The key is accepted wherever this holds. */
const accepting = (when: (state: AgentState, keyId: string) => boolean): Domain =>
  agents((state, command, now) => {
    const reply = handle(state, command, now);
    const accepts = command.kind === "authenticate" && when(state, command.keyId);
    return accepts ? { kind: "authenticated", accepted: true } : reply;
  });

const archived = (state: AgentState): AgentState => asActive(state, "archived");

const keys: readonly Mutant[] = [
  {
    fault: "a revoked key is accepted until the agent has another",
    complaint: "the use of akey",
    domain: () => accepting((state) => state.lifecycle !== "archived" && state.access?.activeKeyId === null),
  },
  {
    fault: "any key that the agent ever had is accepted",
    complaint: "the use of akey",
    domain: () => accepting((state, keyId) => state.lifecycle !== "archived" && keyId === "akey_0"),
  },
  {
    fault: "an archived agent's key is accepted",
    complaint: "the use of akey",
    domain: () => accepting((state) => state.lifecycle === "archived"),
  },
  {
    fault: "archiving leaves the key",
    complaint: "the active key",
    domain: () =>
      agents((state, command, now) => {
        const keyId = state.access?.activeKeyId ?? null;
        const reply = handle(state, command, now);
        if (command.kind === "archive" && state.access !== undefined) state.access.activeKeyId = keyId;
        return reply;
      }),
  },
  {
    fault: "minting replaces the active key",
    complaint: "a second key",
    domain: () => agentsDeciding(["mint_key"], (state) => withAccess(state, { activeKeyId: null })),
  },
  {
    fault: "minting brings an archived agent a key",
    complaint: "a key for an archived agent",
    domain: () => agentsDeciding(["mint_key"], archived),
  },
  {
    fault: "the record is believed before the actor about which key is active",
    complaint: "a second key",
    domain: () =>
      agentsDeciding(["mint_key", "revoke_key"], (state, command) =>
        command.kind === "mint_key" || command.kind === "revoke_key"
          ? withAccess(state, { activeKeyId: command.recordedKeyId })
          : state,
      ),
  },
  {
    fault: "a person's hand on the keys is forgotten",
    complaint: "whether a person touched its keys",
    domain: () =>
      agentsAfter((state, event) => {
        if (event.type === "key_changed" && state.access !== undefined) state.access.touchedByPerson = false;
      }),
  },
  {
    fault: "the first use is stamped anew each time",
    complaint: "when a key was first used",
    domain: () =>
      agents((state, command, now) => {
        const reply = handle(state, command, now);
        if (reply.kind === "authenticated" && reply.accepted && state.access !== undefined)
          state.access.authenticatedAt = now;
        return reply;
      }),
  },
];

const delivery: readonly Mutant[] = [
  {
    fault: "a proof is stamped in the window",
    complaint: "a proof of non-delivery",
    domain: () =>
      agentsDeciding(["prove_non_delivery"], (state) => withBundled(state, { deliverableUntil: 0 })),
  },
  {
    fault: "a proof is stamped for any lineage",
    complaint: "a proof of non-delivery",
    domain: () =>
      agentsDeciding(["prove_non_delivery"], (state, command) =>
        command.kind === "prove_non_delivery" ? withBundled(state, { lineageId: command.lineageId }) : state,
      ),
  },
  {
    fault: "a later replay moves the proof",
    complaint: "the proof of non-delivery",
    domain: () => agentsDeciding(["prove_non_delivery"], (state) => withBundled(state, { provenAt: null })),
  },
  {
    fault: "the key is delivered at the end of the window exactly",
    complaint: "a key was delivered after the window",
    seed: 20_261_123,
    domain: () => ({ ...realDomain, isDeliverable: (until, now) => now <= until }),
  },
  {
    fault: "the key is delivered as long as nothing has erased it, whatever the time",
    complaint: "a key was delivered after the window",
    seed: 20_261_122,
    domain: () => ({ ...realDomain, isDeliverable: (until, now) => now < until + MINUTE }),
  },
];

const machineArchive: readonly Mutant[] = [
  {
    fault: "a machine archives an agent of another lineage",
    complaint: "an archive by a machine",
    domain: () =>
      agentsDeciding(["archive"], (state, command) =>
        command.kind === "archive" && command.by.type === "organization_key"
          ? withBundled(state, { lineageId: command.by.lineageId })
          : state,
      ),
  },
  {
    fault: "a machine archives in the window",
    complaint: "an archive by a machine",
    domain: () => agentsDeciding(["archive"], (state) => withBundled(state, { deliverableUntil: 0 })),
  },
  {
    fault: "the window is over a millisecond early",
    complaint: "an archive by a machine",
    domain: () => agentsArchivingAt("organization_key", (now) => now + 1),
  },
  {
    fault: "a machine archives without a proof",
    complaint: "an archive by a machine",
    domain: () => agentsDeciding(["archive"], (state) => withBundled(state, { provenAt: 1 })),
  },
  {
    fault: "a machine archives an agent that has used its key",
    complaint: "an archive by a machine",
    seed: 20_261_127,
    domain: () => agentsDeciding(["archive"], (state) => withAccess(state, { authenticatedAt: null })),
  },
  {
    fault: "a machine archives an agent that has asked for payments",
    complaint: "an archive by a machine",
    seed: 20_261_122,
    domain: () => agentsDeciding(["archive"], (state) => ({ ...state, sequence: 0 })),
  },
  {
    fault: "a machine archives an agent whose keys a person has touched",
    complaint: "an archive by a machine",
    domain: () => agentsDeciding(["archive"], (state) => withAccess(state, { touchedByPerson: false })),
  },
  {
    fault: "a balance that can't be read counts as zero",
    complaint: "an archive by a machine",
    domain: () =>
      agentsBefore((_state, command) => {
        if (command.kind !== "archive" || command.by.type === "user") return command;
        const { balance } = command.by;
        return { ...command, by: { ...command.by, balance: balance === "unreadable" ? "zero" : balance } };
      }),
  },
];

const archive: readonly Mutant[] = [
  {
    fault: "archiving leaves what is on hold",
    complaint: "what archiving ended",
    seed: 20_261_123,
    domain: () => agentsDeciding(["archive"], (state) => ({ ...state, open: {} })),
  },
  {
    fault: "archiving denies what is on hold and keeps its reservation",
    complaint: "reserved by",
    seed: 20_261_123,
    domain: () =>
      agentsAfter((state, event) => {
        const isDenied = event.type === "payment_changed" && event.payment.denial?.code === "AGENT_ARCHIVED";
        if (isDenied) state.usage.reservedCents += event.payment.request.amountCents;
      }),
  },
  {
    fault: "archiving calls expired payments denied",
    complaint: "the status of",
    seed: 20_261_142,
    domain: () => agentsArchivingAt("user", (now) => now - 10 * MINUTE),
  },
  {
    fault: "a payment is accepted after the archive",
    complaint: "an archived agent's payment",
    domain: () => agentsDeciding(["pay"], archived),
  },
  {
    fault: "resuming brings an archived agent back",
    complaint: "an archived agent's life",
    seed: 20_261_122,
    domain: () =>
      agentsDeciding(["resume"], (state) =>
        state.lifecycle === "archived" ? { ...state, lifecycle: "paused" } : state,
      ),
  },
  {
    fault: "an archived agent is renamed",
    complaint: "an archived agent's new name",
    domain: () => agentsDeciding(["rename"], archived),
  },
  {
    fault: "archiving again is archiving anew",
    complaint: "whether it was archived just now",
    domain: () => agentsDeciding(["archive"], archived),
  },
  {
    fault: "the wallet of an agent that lives counts as detached",
    complaint: "is detached",
    domain: () =>
      agentsBefore((state, command) => {
        if (command.kind === "confirm_detached") state.walletDetached = true;
        return command;
      }),
  },
];

const stop: readonly Mutant[] = [
  {
    fault: "a paused agent's payment is sent",
    complaint: "leave to send",
    domain: () => agentsDeciding(["ask_to_send"], (state) => asActive(state, "paused")),
  },
  {
    fault: "a payment decided before the pause goes on after the emergency stop",
    complaint: "leave to send",
    domain: () =>
      agentsAfter((state, event) => {
        if (event.type !== "payments_withdrawn") return;
        for (const open of Object.values(state.open)) delete open.isWithdrawn;
      }),
  },
  {
    fault: "a revocation is the emergency stop though the agent goes on",
    complaint: "leave to send",
    domain: () =>
      agentsDeciding(["revoke_key"], (state) =>
        state.lifecycle === "active" ? { ...state, lifecycle: "paused" } : state,
      ),
  },
  {
    fault: "a revoked key's payment is decided",
    complaint: "a dead key's payment",
    domain: () =>
      agentsDeciding(["pay"], (state, command) =>
        command.kind === "pay" ? withAccess(state, { activeKeyId: command.keyId }) : state,
      ),
  },
  {
    fault: "who pauses is not told how long others may still send",
    complaint: "a change of life",
    domain: () => agentsDeciding(["pause"], (state) => ({ ...state, leaveUntil: 0 })),
  },
  {
    fault: "leave to send is given and forgotten",
    complaint: "a change of life",
    domain: () =>
      agentsAfter((state, event) => {
        if (event.type === "leave_given") state.leaveUntil = 0;
      }),
  },
];

const events: readonly Mutant[] = [
  {
    fault: "pausing what is paused fires again",
    complaint: "a change of life",
    domain: () => agentsDeciding(["pause"], (state) => asActive(state, "paused")),
  },
  {
    fault: "a change of the lifecycle is not told",
    complaint: "left the outbox and is not in the journal",
    domain: () =>
      agentsAfter((state, event) => {
        if (event.type === "lifecycle_changed") state.outbox?.pop();
      }),
  },
  {
    fault: "a change of the lifecycle is told twice",
    complaint: "an event",
    domain: () =>
      agentsAfter((state, event) => {
        const last = state.outbox?.at(-1);
        if (event.type === "lifecycle_changed" && last !== undefined)
          state.outbox?.push({ ...last, id: `${last.id}-again` });
      }),
  },
  {
    fault: "events have one id for each type",
    complaint: "an event",
    domain: () =>
      agentsAfter((state, event) => {
        const last = state.outbox?.pop();
        if (last !== undefined)
          state.outbox?.push(event.type === "lifecycle_changed" ? { ...last, id: `evt_${last.type}` } : last);
      }),
  },
  {
    fault: "any confirmation of the record empties the outbox",
    complaint: "left the outbox and is not in the journal",
    domain: () =>
      agentsAfter((state, event) => {
        if (event.type === "summary_confirmed") state.outbox = [];
      }),
  },
  {
    fault: "no confirmation empties the outbox",
    complaint: "stay in the outbox for ever",
    domain: () =>
      agents((state, command, now) => {
        const outbox = [...(state.outbox ?? [])];
        const reply = handle(state, command, now);
        if (command.kind === "confirm_summary") state.outbox = outbox;
        return reply;
      }),
  },
  {
    fault: "an archive changes the record under its old revision",
    complaint: "one revision shows two things",
    domain: () =>
      agentsAfter((state, event) => {
        if (event.type === "lifecycle_changed" && event.lifecycle === "archived") state.revision -= 1;
      }),
  },
  {
    fault: "continue-as-new forgets the proof",
    complaint: "continue-as-new lost something",
    domain: () => agentsRollingOver((state) => withBundled(state, { provenAt: null })),
  },
  {
    fault: "continue-as-new forgets what is not told yet",
    complaint: "continue-as-new lost something",
    domain: () => agentsRollingOver((state) => ({ ...state, outbox: [] })),
  },
];

/** Faults in an agent's keys and life. */
export const lifeMutants: readonly Mutant[] = [
  ...keys,
  ...delivery,
  ...machineArchive,
  ...archive,
  ...stop,
  ...events,
];
