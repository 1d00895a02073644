/** Objects of the simulated network, in the shapes of Stripe's API. Amounts are cents, times epoch seconds. */

export interface Stored {
  readonly id: string;
  readonly object: string;
  readonly created: number;
}

type Metadata = Readonly<Record<string, string>>;

export interface Cardholder extends Stored {
  readonly object: "issuing.cardholder";
  readonly name: string;
  readonly type: string;
  readonly status: string;
  readonly livemode: false;
  readonly metadata: Metadata;
}

export interface Card extends Stored {
  readonly object: "issuing.card";
  readonly cardholder: Cardholder;
  readonly currency: "usd";
  readonly last4: string;
  readonly status: "active" | "inactive" | "canceled";
  readonly type: "virtual";
  readonly livemode: false;
  readonly metadata: Metadata;
  readonly spending_controls: {
    readonly spending_limits: readonly { readonly amount: number; readonly interval: string }[];
    readonly allowed_categories?: readonly string[];
    readonly blocked_categories?: readonly string[];
  };
}

export interface Merchant {
  readonly name: string;
  readonly category: string;
  readonly category_code: string;
  readonly network_id: string;
  readonly country: string;
}

export interface Decision {
  readonly approved: boolean;
  readonly reason: string;
}

export interface RequestRecord extends Decision {
  readonly amount: number;
  readonly currency: "usd";
  readonly created: number;
}

export interface Authorization extends Stored {
  readonly object: "issuing.authorization";
  readonly amount: number;
  readonly approved: boolean;
  readonly card: Card;
  readonly currency: "usd";
  readonly livemode: false;
  readonly merchant_data: Merchant;
  readonly metadata: Metadata;
  readonly pending_request: {
    readonly amount: number;
    readonly currency: "usd";
    readonly is_amount_controllable: false;
  } | null;
  readonly request_history: readonly RequestRecord[];
  readonly status: "pending" | "closed" | "reversed" | "expired";
  readonly transactions: readonly Transaction[];
}

export interface Transaction extends Stored {
  readonly object: "issuing.transaction";
  /** Change of the balance: negative for captures and reversed refunds. */
  readonly amount: number;
  readonly authorization: string | null;
  readonly card: string;
  readonly currency: "usd";
  readonly dispute: string | null;
  readonly livemode: false;
  readonly merchant_data: Merchant;
  readonly metadata: Metadata;
  readonly type: "capture" | "refund";
}

export interface Dispute extends Stored {
  readonly object: "issuing.dispute";
  readonly amount: number;
  readonly balance_transactions: readonly { readonly amount: number; readonly created: number }[];
  readonly currency: "usd";
  readonly evidence: unknown;
  readonly livemode: false;
  readonly metadata: Metadata;
  readonly status: "unsubmitted" | "submitted" | "won" | "lost";
  readonly transaction: string;
}

export interface Endpoint extends Stored {
  readonly object: "webhook_endpoint";
  readonly enabled_events: readonly string[];
  readonly livemode: false;
  readonly metadata: Metadata;
  readonly secret: string;
  readonly status: "enabled";
  readonly url: string;
}

export interface NetworkEvent extends Stored {
  readonly object: "event";
  readonly type: string;
  readonly api_version: string;
  readonly livemode: false;
  readonly data: { readonly object: unknown };
}

/** The network's own totals of an authorization, or of a card's transactions without one. */
export interface Totals extends Stored {
  readonly object: "simulator.totals";
  readonly cardId: string;
  /** Null for transactions without an authorization. */
  readonly authorization: string | null;
  readonly requests: number;
  readonly held: number;
  readonly captured: number;
  readonly credited: number;
  readonly recalled: number;
  readonly disputed: number;
  readonly isOpen: boolean;
  /** Whether the merchant has released a part of the hold. */
  readonly isReduced: boolean;
}

export interface Settings extends Stored {
  readonly object: "simulator.settings";
  /** Address to ask about authorizations; null: the network approves by itself. */
  readonly authorizationUrl: string | null;
  readonly authorizationSecret: string;
  readonly answerTimeoutMs: number;
  /** The network's own decision if no answer arrives in time. */
  readonly standsIn: "approve" | "decline";
  /** Whether an authorization's `amount` falls with captures; Stripe does not say. */
  readonly amountFalls: boolean;
  /** Whether the account says that it is in live mode. */
  readonly isLive: boolean;
  /** Money paid in. */
  readonly fundedCents: number;
  /** Shares of events `lost` and `doubled`. Events arrive up to `delayMaxMs` late, and so out of order. */
  readonly lost: number;
  readonly doubled: number;
  readonly delayMaxMs: number;
  /** Whether requests show which of their authorization they are: Stripe's do by their history, Lithic's do not. */
  readonly numbersRequests: boolean;
  /** Shares of requests whose answer is lost, and of requests sent twice. */
  readonly answersLost: number;
  readonly requestsDoubled: number;
}
