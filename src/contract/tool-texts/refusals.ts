import type { ErrorCode } from "../../domain/errors.ts";
import type { AgentTool, ToolsetKind, ManagementTool } from "../tool-names.ts";
import type { RefusalText } from "./types.ts";

/**
 * Refusals in a toolset's terms, with the model's next step. A tool's own text takes precedence over its toolset's,
 * which takes precedence over the shared one; each may replace one half.
 */

type Texts = Readonly<Partial<Record<ErrorCode, Partial<RefusalText>>>>;

const BOTH: Texts = {
  VALIDATION_FAILED: {
    what: "The arguments are invalid.",
    next: "`issues` says what is wrong with each and what is expected: correct them and call again.",
  },
  BAD_CURSOR: {
    what: "The cursor does not belong to this list.",
    next: "Call again without one for the first page, then with its nextCursor and the same filters.",
  },
  RATE_LIMITED: {
    what: "Too many calls in this minute.",
    next: "Wait for retry_after_seconds, then call again with the same arguments.",
  },
  SERVICE_UNAVAILABLE: {
    what: "A part of the service can't be reached just now.",
    next: "Wait for some seconds, then call again with the same arguments.",
  },
  INTERNAL: {
    what: "An internal error occurred in the service.",
    next: "Call again once with the same arguments; if it happens again, report requestId to the people you work for.",
  },
};

const REPEAT_CREATE =
  "Wait for some seconds, then call again with the same arguments and the same idempotencyKey: nothing is created twice.";

const AGENT: Texts = {
  UNAUTHORIZED: { what: "Your key is no longer valid.", next: "Stop, and tell the people you work for." },
  AGENT_PAUSED: {
    what: "People have paused you.",
    next: "Stop, and do not try again: only they can resume you.",
  },
  WRONG_CREDENTIAL: {
    what: "This tool manages agents, and an agent may not use it.",
    next: "Use the tools that are listed; limits and approvals are up to people.",
  },
  TOOL_NOT_ALLOWED: {
    what: "Your key does not include this tool.",
    next: "Use the tools that are listed, or tell the people you work for what you need it for.",
  },
  IDEMPOTENCY_KEY_REQUIRED: {
    what: "A payment needs an idempotencyKey.",
    next: "Make a new random value, such as a UUID, store it, and call again with it; repeat the call with the same one after any doubt.",
  },
  IDEMPOTENCY_KEY_REUSED: {
    what: "This idempotencyKey belongs to another payment of yours, with other arguments; nothing was paid now.",
    next: "If you mean that payment, read it with get_payment. For a new payment call again with a new idempotencyKey.",
  },
  RATE_LIMITED: {
    next: "Wait for retry_after_seconds, then call again with the same arguments, the same idempotencyKey included.",
  },
  PRICE_ABOVE_MAX: {
    what: "The seller asks for more than maxAmountCents; nothing was paid.",
    next: "If it is worth its price, call again with a higher maxAmountCents and a new idempotencyKey; else leave it.",
  },
  NO_PAYABLE_OFFER: {
    what: "The seller takes payment in no way that your wallet can pay; nothing was paid.",
    next: "Look for another seller, or tell the people you work for.",
  },
  SHOP_UNREACHABLE: {
    what: "The seller gave no answer in time; nothing was paid by this call.",
    next: "Call again later with the same arguments and the same idempotencyKey, or look for another seller.",
  },
  NOT_FOUND: { what: "You have no payment with this id.", next: "list_payments shows yours." },
  RAISE_PENDING: {
    what: "A raise that you asked for waits for a person.",
    next: "Repeat that call with its idempotencyKey to see what became of it.",
  },
  RAISE_NOT_NEEDED: {
    what: "Every limit has room for this amount.",
    next: "Pay; if a payment was denied for another reason, get_denial_feedback says which.",
  },
  RAISE_LIMIT_REACHED: {
    what: "You have asked for 5 raises in 24 hours.",
    next: "Wait for retry_after_seconds, or tell the people you work for.",
  },
  PAYMENT_NOT_CANCELLABLE: {
    what: "This payment is not on hold, so it can't be cancelled.",
    next: "get_payment shows its status.",
  },
};

/** Refusals of payments whose outcome is unknown; the same key finds it out. */
const PAYS: Texts = {
  SERVICE_UNAVAILABLE: {
    what: "A part of the service can't be reached just now; whether the payment was made is not known yet.",
    next: "Wait for some seconds, then call again with the same arguments and the same idempotencyKey: it is never paid twice.",
  },
  INTERNAL: {
    what: "An internal error occurred in the service; whether the payment was made is not known.",
    next:
      "Call again with the same arguments and the same idempotencyKey, which never pays twice; if it happens again, " +
      "report requestId to the people you work for.",
  },
};

const MANAGEMENT: Texts = {
  UNAUTHORIZED: { what: "Your key is no longer valid.", next: "Ask a person for another one." },
  WRONG_CREDENTIAL: {
    what: "This tool spends, and an organization's key never does.",
    next: "Only an agent pays, with its own key.",
  },
  INSUFFICIENT_SCOPE: {
    what: "Your key lacks the scope that requiredScope names, which this tool needs.",
    next: "A key's scopes never change: ask a person for a key that has it.",
  },
  SESSION_REQUIRED: {
    what: "Only people set walletTargetCents; nothing was changed.",
    next: "Call again without it.",
  },
  OUTSIDE_BINDING: {
    what: "It is outside the project or team that your key is bound to.",
    next: "A key's binding never changes: act only within it (the list_ tools show what there is), or ask a person.",
  },
  AGENT_ARCHIVED: {
    what: "The agent is archived for good and can't be changed.",
    next: "create_agent makes a new one.",
  },
  NOT_FOUND: {
    what: "There is no agent with this id in your organization.",
    next: "list_agents shows those that your key may act on.",
  },
  VERSION_CONFLICT: {
    what: "The agent's limits were changed since you read them; nothing was changed now.",
    next: "Call get_agent_budget_policy, decide again from what it shows, and send its version.",
  },
  STALE_BUDGET: { what: "The budget, or one in it, was changed since you read it; nothing was changed now." },
  STALE_APPROVAL_RULES: {
    what: "The approval rules were changed since you read them; nothing was changed now.",
  },
  BUDGET_CHILDREN_INCOMPLETE: {
    what: "A budget is replaced as a whole, and children are missing; nothing was changed.",
  },
  BUDGET_CHILD_UNKNOWN: {
    what: "Some ids do not belong here or are repeated; nothing was changed. `unknown` has them.",
  },
  IDEMPOTENCY_KEY_REQUIRED: {
    what: "A create needs an idempotencyKey.",
    next: "Make a new random value, such as a UUID, store it, and call again with it; repeat the call with the same one after any doubt.",
  },
  IDEMPOTENCY_KEY_REUSED: {
    what: "This idempotencyKey was used for another create, with other arguments; nothing was created.",
    next: "To get its result, repeat it with exactly its arguments. To create something new, call again with a new idempotencyKey.",
  },
  ORG_NOT_READY: { what: "The organization is still being set up.", next: REPEAT_CREATE },
  REQUEST_IN_PROGRESS: { what: "The same create is still under way.", next: REPEAT_CREATE },
  CREATE_RETRYABLE: { what: "The create could not be completed just now.", next: REPEAT_CREATE },
  DAILY_CREATE_LIMIT_REACHED: {
    what: "Your key's daily create limit is reached.",
    next: "It resets at midnight UTC, in retry_after_seconds; only a person can give you a key with a higher limit.",
  },
  MACHINE_ARCHIVE_DENIED: {
    what:
      "Your key may not archive this agent, and never will: it was used, holds money, was not created by your " +
      "key, or a person has created or revoked a key of it.",
    next: "Do not try again. Stop it with pause_agent, and ask a person to archive it.",
  },
  KEY_STILL_DELIVERABLE: {
    what: "The agent's API key can still be delivered, so the agent is not lost.",
    next:
      "Repeat its create_agent call with the same arguments and idempotencyKey: it answers the key, and you keep " +
      "the agent. It can't be archived before some 30 minutes have passed since it was created; pause_agent " +
      "stops it now.",
  },
  KEY_DELIVERY_UNPROVEN: {
    what: "It is not certain yet that the agent's API key was never delivered.",
    next:
      "Repeat its create_agent call with the same arguments and idempotencyKey; once that answers keyDelivery " +
      "`expired`, archive again. After some tries ask a person.",
  },
  BALANCE_UNVERIFIABLE: {
    what: "What the agent's wallet holds can't be read just now.",
    next: "Call again in a minute; after some tries ask a person.",
  },
};

/** Returns the refusals for budgets and rules of a kind of container, whose own tools read them. */
function containerTexts(noun: "project" | "team"): Texts {
  const children = noun === "project" ? "team" : "agent";
  const readBudget = `Call get_${noun}_budget`;
  const readRules = `Call get_${noun}_approval_rules`;
  return {
    NOT_FOUND: {
      what: `There is no ${noun} with this id in your organization.`,
      next: `list_${noun}s shows those that your key may act on.`,
    },
    CONTAINER_ARCHIVED: {
      what: `The ${noun} is archived for good and can't be changed.`,
      next: `list_${noun}s with state \`active\` shows those in use.`,
    },
    STALE_BUDGET: {
      next: `${readBudget}, decide again from what it shows, and send all of it with its version.`,
    },
    BUDGET_CHILDREN_INCOMPLETE: {
      what: `A budget is replaced as a whole, and the ${children}s in \`missing\` are not named; nothing was changed.`,
      next: `${readBudget}, and send each ${children} that it shows, with its version.`,
    },
    BUDGET_CHILD_UNKNOWN: {
      next: `${readBudget}, and send each ${children} that it shows once, and no others.`,
    },
    STALE_APPROVAL_RULES: {
      next: `${readRules}, decide again from what it shows, and send all rules with its version.`,
    },
  };
}

/** Returns the refusals of a replacement: after an unknown outcome the model reads the record again. */
const replaced = (read: string): Texts => ({
  SERVICE_UNAVAILABLE: {
    what: "A part of the service can't be reached just now; whether the change was made is not known yet.",
    next: `Wait for some seconds, call ${read}, and change what it does not show yet, with its version.`,
  },
});

const TOOLS: Readonly<Partial<Record<AgentTool | ManagementTool, Texts>>> = {
  create_card_payment: PAYS,
  create_wallet_payment: PAYS,
  pay_x402_request: PAYS,
  get_denial_feedback: {
    NOT_FOUND: {
      what: "You have no payment with this id that was denied, failed, expired or reversed.",
      next: "get_payment shows its status; without transactionId you get the last 20 that were not made.",
    },
  },
  get_wallet: {
    NOT_FOUND: { what: "You have no wallet.", next: "Pay by card, or ask the people you work for." },
  },
  cancel_payment: {
    SERVICE_UNAVAILABLE: {
      what: "A part of the service can't be reached just now; whether the payment was cancelled is not known yet.",
      next: "Wait for some seconds, then look at it with get_payment.",
    },
  },
  request_raise: {
    IDEMPOTENCY_KEY_REQUIRED: { what: "A request for a raise needs an idempotencyKey." },
    IDEMPOTENCY_KEY_REUSED: {
      what: "This idempotencyKey belongs to another request of yours, with other arguments.",
      next: "For a new request call again with a new idempotencyKey.",
    },
  },
  create_agent: {
    NOT_FOUND: {
      what: "There is no team with this id in your organization.",
      next: "list_teams shows those that your key may act on.",
    },
    CONTAINER_ARCHIVED: {
      what: "The team is archived, so no agent can be created in it.",
      next: "list_teams with state `active` shows those in use.",
    },
    PROJECT_FULL: {
      what: "The team's project has the maximum of 10,000 active agents.",
      next: "Use a team of another project, which list_teams shows, or ask a person for a new project.",
    },
  },
  update_agent_budget_policy: replaced("get_agent_budget_policy"),
  create_project: {
    OUTSIDE_BINDING: {
      what: "Your key is bound to one project or team, so it can't create projects.",
      next: "Ask a person for a key that is bound to the organization, or to create the project.",
    },
  },
  create_team: {
    OUTSIDE_BINDING: {
      what: "Your key is bound to one team, so it can't create teams.",
      next: "Ask a person for a key that is bound to the project, or to create the team.",
    },
    NOT_FOUND: {
      what: "There is no project to create the team in.",
      next: "Ask a person to create the team.",
    },
    CONTAINER_ARCHIVED: {
      what: "The project that the team would be created in is archived.",
      next: "Ask a person to create the team in another project.",
    },
    TOO_MANY_TEAMS: {
      what: "The project that the team would be created in has the maximum of 1,000 active teams.",
      next: "Use one of the teams that list_teams shows, or ask a person to archive some, or to create the team in another project.",
    },
    PROJECT_FULL: {
      what: "The project that the team would be created in has had the maximum of 2,000 teams, archived ones included.",
      next: "Use one of the teams that list_teams shows, or ask a person to create the team in another project.",
    },
  },
  get_project_budget: containerTexts("project"),
  set_project_budget: { ...containerTexts("project"), ...replaced("get_project_budget") },
  get_project_approval_rules: containerTexts("project"),
  set_project_approval_rules: { ...containerTexts("project"), ...replaced("get_project_approval_rules") },
  get_team_budget: containerTexts("team"),
  set_team_budget: { ...containerTexts("team"), ...replaced("get_team_budget") },
  get_team_approval_rules: containerTexts("team"),
  set_team_approval_rules: { ...containerTexts("team"), ...replaced("get_team_approval_rules") },
};

const TOOLSETS: Readonly<Record<ToolsetKind, Texts>> = { agent: AGENT, management: MANAGEMENT };

export function refusalText(toolset: ToolsetKind, tool: string, code: ErrorCode): RefusalText | null {
  const own = Object.entries(TOOLS).find(([name]) => name === tool)?.[1];
  const { next, what } = { ...BOTH[code], ...TOOLSETS[toolset][code], ...own?.[code] };
  return what === undefined || next === undefined ? null : { what, next };
}
