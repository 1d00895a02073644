import type { CardIssuerKind } from "../../payments/card-issuer.ts";

/** Issuers whose accounts can be connected. Each is registered here. */
export const CARD_ISSUERS: readonly CardIssuerKind[] = [];
