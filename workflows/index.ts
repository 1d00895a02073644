// Entry of the workflow bundle: exports every workflow type and nothing else.
export { agent } from "./agent.ts";
export { ledger } from "./ledger.ts";
export { approval } from "./approval.ts";
export { organization } from "./organization.ts";
export { railNetwork } from "./rail-network.ts";
export { settlement } from "./settlement.ts";
export { delivery } from "./delivery.ts";
export { inviteMail } from "./invite-mail.ts";
export { approvalMails } from "./approval-mails.ts";
export { replay } from "./replay.ts";
export { secretExpiry } from "./secret-expiry.ts";
export { watch } from "./watch.ts";
