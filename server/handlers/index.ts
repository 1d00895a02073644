import { agentHandlers } from "./agents.ts";
import { approvalHandlers } from "./approvals.ts";
import { authHandlers } from "./auth.ts";
import type { HandlerDependencies } from "./dependencies.ts";
import { paymentHandlers } from "./payments.ts";
import { transactionHandlers } from "./transactions.ts";
import type { Handlers } from "./types.ts";

/** The handler of every operation; one that is missing does not compile. */
export const createHandlers = (dependencies: HandlerDependencies): Handlers => ({
  ...authHandlers(dependencies),
  ...agentHandlers(dependencies),
  ...paymentHandlers(dependencies),
  ...approvalHandlers(dependencies),
  ...transactionHandlers(dependencies),
});
