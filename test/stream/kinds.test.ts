import { expect } from "chai";
import { leavesEntry } from "../../src/audit/record.ts";
import { kindsPublishedBy } from "../../src/changes/kinds.ts";
import { operationList } from "../../src/contract/registry.ts";

/** Writes of which no page hears by their entries: records of theirs are followed, or they are a person's own. */
const NOT_TOLD: readonly string[] = [
  // Agents, approvals and raise requests: their records are followed.
  "grantRaiseRequest",
  "refuseRaiseRequest",
  "createAgent",
  "updateAgent",
  "updateAgentBudgetPolicy",
  "setAgentRestrictions",
  "pauseAgent",
  "resumeAgent",
  "mintAgentKey",
  "revokeAgentKey",
  "connectClient",
  "denyConnection",
  "archiveAgent",
  "stopTeam",
  "stopProject",
  "stopOrganization",
  "pauseTeamAgents",
  "revokeTeamAgentKeys",
  "pauseProjectAgents",
  "revokeProjectAgentKeys",
  "approveApproval",
  "decideApprovals",
  "denyApproval",
  // A user's own account and sessions.
  "signIn",
  "signInWithPasskey",
  "startSso",
  "finishSso",
  "endSsoSessions",
  "passkeySignInOptions",
  "signOut",
  "refreshSession",
  "setUp",
  "checkSetUp",
  "checkInvite",
  "enrollTotp",
  "confirmTotp",
  "changePassword",
  "updateNotifications",
  "endSession",
  "endOtherSessions",
  "stepUp",
  "stepUpOptions",
  "passkeyOptions",
  "enrollPasskey",
  "updatePasskey",
  "removePasskey",
  // Deliveries are looked at when they are shown.
  "testWebhook",
  "redeliverWebhook",
  // Money on the chain, test money.
  "fundAgent",
  // Read when they are shown.
  "connectCardIssuer",
  "disconnectCardIssuer",
  "checkCardIssuer",
  "viewCard",
  "disputeTransaction",
  "fundAgentInSandbox",
  "depositToTreasury",
  "failBilling",
];

describe("what streams tell of", () => {
  it("each write is streamed by its entry in the audit log, or is listed as an exception", () => {
    const writes = operationList.map(([id]) => id).filter((id) => leavesEntry(id));
    const silent = writes.filter((id) => kindsPublishedBy(id.replace(/ByTool$/, "")).length === 0);
    expect(silent.toSorted()).to.deep.equal(NOT_TOLD.toSorted());
  });
});
