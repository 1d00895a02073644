import type { AgentDocument } from "../../src/store/documents.ts";
import { withChecksum } from "../../src/domain/address.ts";
import { type Refusal, refusal } from "../../src/domain/errors.ts";
import { type Rail, SETTLES_ON } from "../../src/domain/ledger/payment.ts";
import type { HandlerDependencies } from "./dependencies.ts";

interface Recipient {
  readonly merchant?: string | undefined;
  readonly recipient?: string | undefined;
}

/**
 * Returns the order with its recipient from the rail's own field. The contract ensures that exactly that field is
 * present.
 */
export function orderOf<T extends Recipient & { readonly rail: Rail }>({
  merchant,
  recipient = merchant,
  ...order
}: T) {
  if (recipient === undefined) throw new Error("a payment has no recipient");
  const isAddress = SETTLES_ON[order.rail] === "chain";
  return { ...order, recipient: isAddress ? withChecksum(recipient) : recipient };
}

/**
 * Returns the refusal of a recipient to which money would not move, or be lost; null if it is allowed. The address's
 * format was checked before.
 */
export function wrongRecipient(
  wallets: HandlerDependencies["wallets"],
  agent: AgentDocument,
  recipient: string,
): Refusal | null {
  const isSame = (address: string | undefined) => address?.toLowerCase() === recipient.toLowerCase();
  const message = isSame(agent.wallet?.address)
    ? "must not be the agent's own wallet"
    : isSame(wallets?.config.token)
      ? "must not be the token itself"
      : null;
  if (message === null) return null;
  return refusal("VALIDATION_FAILED", undefined, { issues: [{ path: "recipient", message }] });
}
