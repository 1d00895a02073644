import { fieldsOf, type Fields, itemsOf, textsOf } from "./form.ts";
import { CallRefused } from "./call-refused.ts";
import { cardDataOf } from "./card-data.ts";
import { makeEphemeralKey } from "./elements.ts";
import type { CardNetwork } from "./network.ts";
import type {
  Authorization,
  Card,
  Cardholder,
  Dispute,
  Endpoint,
  Merchant,
  NetworkEvent,
  Stored,
  Transaction,
} from "./shapes.ts";

const PAGE_MAX = 100;
/** Codes of some merchant categories; Stripe has all of them. */
const CODES: Readonly<Record<string, string>> = {
  airlines_air_carriers: "4511",
  betting_casino_gambling: "7995",
  book_stores: "5942",
  computer_network_services: "4816",
  computer_software_stores: "5734",
  hotels_motels_and_resorts: "7011",
  quasi_cash: "6051",
  taxicabs_limousines: "4121",
};
const OTHER_CODE = "5999";

interface Call {
  readonly network: CardNetwork;
  readonly id: string;
  readonly fields: Fields;
}

type Route = readonly [method: string, path: RegExp, handle: (call: Call) => unknown];

const text = (fields: Fields, name: string): string => {
  const found = fields[name];
  if (typeof found === "string" && found !== "") return found;
  throw new CallRefused(`Missing required param: ${name}.`, 400, "parameter_missing");
};

function centsOrNull(fields: Fields, name: string): number | null {
  const found = fields[name];
  if (found === undefined) return null;
  if (typeof found === "string" && /^\d{1,12}$/.test(found)) return Number(found);
  throw new CallRefused(`Invalid integer: ${name}`, 400, "parameter_invalid_integer");
}

function cents(fields: Fields, name = "amount"): number {
  const found = centsOrNull(fields, name);
  if (found === null) throw new CallRefused(`Missing required param: ${name}.`, 400, "parameter_missing");
  return found;
}

function merchantOf({ merchant_data: given }: Fields): Merchant {
  const {
    category = "book_stores",
    country = "US",
    name = "Test Merchant",
    network_id = "1234567890",
  } = textsOf(given);
  return { name, category, category_code: CODES[category] ?? OTHER_CODE, network_id, country };
}

function statusOf(fields: Fields): Card["status"] {
  const { status = "inactive" } = fields;
  if (status === "active" || status === "inactive" || status === "canceled") return status;
  throw new CallRefused("Invalid status");
}

/** Returns one page of the matching items, newest first. */
function page<T extends Stored>(
  all: readonly T[],
  { created, limit, starting_after: after }: Fields,
  fits: (item: T) => boolean,
) {
  const { gte = "0", lte = "Infinity" } = textsOf(created);
  const isWithin = (at: number): boolean => at >= Number(gte) && at <= Number(lte);
  const found = all.toReversed().filter((item) => isWithin(item.created) && fits(item));
  const from = typeof after === "string" ? found.findIndex(({ id }) => id === after) + 1 : 0;
  const size = Math.min(PAGE_MAX, Number(typeof limit === "string" ? limit : "10"));
  return { object: "list", data: found.slice(from, from + size), has_more: from + size < found.length };
}

const cardIn = ({ card }: Fields): string => {
  if (typeof card === "string") return card;
  throw new CallRefused("Missing required param: card.", 400, "parameter_missing");
};

const isOfCard = ({ card }: Fields, id: string): boolean => is(card, id);

const is = (wanted: string | Fields | undefined, value: string): boolean =>
  wanted === undefined || wanted === value;

/** The calls of Stripe's API that the service uses, and those that play a merchant and a network. */
const ROUTES: readonly Route[] = [
  [
    "GET",
    /^\/v1\/account$/,
    ({ network }) => ({ id: network.id, object: "account", default_currency: "usd", country: "US" }),
  ],
  [
    "GET",
    /^\/v1\/balance$/,
    ({ network }) => ({
      object: "balance",
      livemode: network.settings.isLive,
      issuing: { available: [{ amount: network.availableCents, currency: "usd" }] },
    }),
  ],
  ["POST", /^\/v1\/topups$/, ({ fields, network }) => network.topUp(cents(fields))],
  [
    "POST",
    /^\/v1\/issuing\/cardholders$/,
    ({ fields, network }) =>
      network.addCardholder({
        name: text(fields, "name"),
        type: text(fields, "type"),
        metadata: textsOf(fields["metadata"]),
      }),
  ],
  [
    "GET",
    /^\/v1\/issuing\/cardholders$/,
    ({ fields, network }) =>
      page(
        network.store.all<Cardholder>("issuing.cardholder"),
        fields,
        ({ status, type }) => is(fields["status"], status) && is(fields["type"], type),
      ),
  ],
  ["POST", /^\/v1\/issuing\/cards$/, makeCard],
  [
    "GET",
    /^\/v1\/issuing\/cards$/,
    ({ fields, network }) =>
      page(network.store.all<Card>("issuing.card"), fields, ({ cardholder }) =>
        is(fields["cardholder"], cardholder.id),
      ),
  ],
  ["GET", /^\/v1\/issuing\/cards\/(\w+)$/, readCard],
  [
    "POST",
    /^\/v1\/issuing\/cards\/(\w+)$/,
    ({ fields, id, network }) => network.setCardStatus(id, statusOf(fields)),
  ],
  [
    "GET",
    /^\/v1\/issuing\/authorizations$/,
    ({ fields, network }) =>
      page(
        network.store.all<Authorization>("issuing.authorization"),
        fields,
        ({ card, status }) => isOfCard(fields, card.id) && is(fields["status"], status),
      ),
  ],
  [
    "GET",
    /^\/v1\/issuing\/authorizations\/(\w+)$/,
    ({ id, network }) => network.get<Authorization>("issuing.authorization", id),
  ],
  [
    "GET",
    /^\/v1\/issuing\/transactions$/,
    ({ fields, network }) =>
      page(
        network.store.all<Transaction>("issuing.transaction"),
        fields,
        ({ card, type }) => isOfCard(fields, card) && is(fields["type"], type),
      ),
  ],
  [
    "GET",
    /^\/v1\/issuing\/transactions\/(\w+)$/,
    ({ id, network }) => network.get<Transaction>("issuing.transaction", id),
  ],
  [
    "POST",
    /^\/v1\/issuing\/disputes$/,
    ({ fields, network }) =>
      network.addDispute({
        transaction: text(fields, "transaction"),
        amount: centsOrNull(fields, "amount"),
        evidence: fields["evidence"] ?? {},
        metadata: textsOf(fields["metadata"]),
      }),
  ],
  [
    "GET",
    /^\/v1\/issuing\/disputes\/(\w+)$/,
    ({ id, network }) => network.get<Dispute>("issuing.dispute", id),
  ],
  ["POST", /^\/v1\/issuing\/disputes\/(\w+)\/submit$/, ({ id, network }) => network.submitDispute(id)],
  [
    "POST",
    /^\/v1\/ephemeral_keys$/,
    ({ fields, network }) => makeEphemeralKey(network, text(fields, "issuing_card"), text(fields, "nonce")),
  ],
  [
    "POST",
    /^\/v1\/webhook_endpoints$/,
    ({ fields, network }) =>
      network.addEndpoint({
        url: text(fields, "url"),
        enabled_events: itemsOf(fields["enabled_events"]).filter((type) => typeof type === "string"),
        metadata: textsOf(fields["metadata"]),
      }),
  ],
  [
    "GET",
    /^\/v1\/webhook_endpoints$/,
    // A secret is returned only on creation.
    ({ fields, network }) =>
      page(
        network.store.all<Endpoint>("webhook_endpoint").map(({ secret: _secret, ...rest }) => rest),
        fields,
        () => true,
      ),
  ],
  [
    "GET",
    /^\/v1\/webhook_endpoints\/(\w+)$/,
    ({ id, network }) => {
      const { secret: _secret, ...rest } = network.get<Endpoint>("webhook_endpoint", id);
      return rest;
    },
  ],
  [
    "DELETE",
    /^\/v1\/webhook_endpoints\/(\w+)$/,
    ({ id, network }) => {
      network.get<Endpoint>("webhook_endpoint", id);
      network.store.delete("webhook_endpoint", id);
      return { id, object: "webhook_endpoint", deleted: true };
    },
  ],
  [
    "GET",
    /^\/v1\/events$/,
    ({ fields, network }) => {
      const types = itemsOf(fields["types"]);
      return page(
        network.store.all<NetworkEvent>("event"),
        fields,
        ({ type }) => types.length === 0 || types.includes(type),
      );
    },
  ],
  [
    "POST",
    /^\/v1\/test_helpers\/issuing\/authorizations$/,
    ({ fields, network }) => network.authorize(cardIn(fields), cents(fields), merchantOf(fields)),
  ],
  [
    "POST",
    /^\/v1\/test_helpers\/issuing\/authorizations\/(\w+)\/capture$/,
    ({ fields, id, network }) =>
      network.capture(id, centsOrNull(fields, "capture_amount"), fields["close_authorization"] !== "false"),
  ],
  [
    "POST",
    /^\/v1\/test_helpers\/issuing\/authorizations\/(\w+)\/increment$/,
    ({ fields, id, network }) => network.increment(id, cents(fields, "increment_amount")),
  ],
  [
    "POST",
    /^\/v1\/test_helpers\/issuing\/authorizations\/(\w+)\/reverse$/,
    ({ fields, id, network }) => network.reverse(id, centsOrNull(fields, "reverse_amount")),
  ],
  [
    "POST",
    /^\/v1\/test_helpers\/issuing\/authorizations\/(\w+)\/expire$/,
    ({ id, network }) => network.expire(id),
  ],
  [
    "POST",
    /^\/v1\/test_helpers\/issuing\/transactions\/create_force_capture$/,
    ({ fields, network }) => network.forceCapture(cardIn(fields), cents(fields), merchantOf(fields)),
  ],
  [
    "POST",
    /^\/v1\/test_helpers\/issuing\/transactions\/create_unlinked_refund$/,
    ({ fields, network }) => network.refundUnlinked(cardIn(fields), cents(fields), merchantOf(fields)),
  ],
  [
    "POST",
    /^\/v1\/test_helpers\/issuing\/transactions\/(\w+)\/refund$/,
    ({ fields, id, network }) => network.refund(id, centsOrNull(fields, "refund_amount")),
  ],
  [
    "POST",
    /^\/simulator\/authorizations\/(\w+)\/capture_late$/,
    ({ fields, id, network }) => network.captureLate(id, cents(fields)),
  ],
  ["POST", /^\/simulator\/transactions\/(\w+)\/reverse$/, ({ id, network }) => network.reverseRefund(id)],
  ["POST", /^\/simulator\/disputes\/(\w+)\/credit$/, ({ id, network }) => network.endDispute(id, "credit")],
  ["POST", /^\/simulator\/disputes\/(\w+)\/lose$/, ({ id, network }) => network.endDispute(id, "lost")],
  ["POST", /^\/simulator\/disputes\/(\w+)\/win$/, ({ id, network }) => network.endDispute(id, "won")],
  ["GET", /^\/simulator\/cards\/(\w+)\/totals$/, ({ id, network }) => ({ data: network.totalsOf(id) })],
  ["GET", /^\/simulator\/settings$/, ({ network }) => network.settings],
  ["POST", /^\/simulator\/settings$/, configure],
];

/** Returns a card; number and code only if requested. */
function readCard({ fields, id, network }: Call) {
  const card = network.get<Card>("issuing.card", id);
  const expanded = itemsOf(fields["expand"]);
  const { code, number } = cardDataOf(network.id, id);
  return {
    ...card,
    ...(expanded.includes("number") ? { number } : {}),
    ...(expanded.includes("cvc") ? { cvc: code } : {}),
  };
}

function makeCard({ fields, network }: Call): Card {
  if (text(fields, "type") !== "virtual") throw new CallRefused("Only virtual cards are simulated.");
  const {
    allowed_categories: allowed,
    blocked_categories: blocked,
    spending_limits: limits,
  } = typeof fields["spending_controls"] === "object" ? fields["spending_controls"] : {};
  const spending_limits = itemsOf(limits).map((limit) => {
    if (typeof limit === "string") throw new CallRefused("Invalid spending_limits");
    return { amount: cents(limit), interval: text(limit, "interval") };
  });
  if (allowed !== undefined && blocked !== undefined)
    throw new CallRefused("Allowed and blocked categories exclude each other.");
  return network.addCard({
    cardholder: network.get<Cardholder>("issuing.cardholder", text(fields, "cardholder")),
    status: statusOf(fields),
    metadata: textsOf(fields["metadata"]),
    spending_controls: {
      spending_limits,
      ...(allowed === undefined ? {} : { allowed_categories: namesOf(allowed) }),
      ...(blocked === undefined ? {} : { blocked_categories: namesOf(blocked) }),
    },
  });
}

const namesOf = (list: string | Fields | undefined): readonly string[] =>
  itemsOf(list).map((name) => {
    if (typeof name !== "string") throw new CallRefused("Invalid categories");
    return name;
  });

function configure({ fields, network }: Call) {
  const { settings } = network;
  const numbers = [
    "answerTimeoutMs",
    "lost",
    "doubled",
    "delayMaxMs",
    "answersLost",
    "requestsDoubled",
  ] as const;
  const found = textsOf(fields);
  const changed = numbers.flatMap((name) =>
    found[name] === undefined ? [] : [[name, Number(found[name])] as const],
  );
  const { amountFalls, authorizationSecret, authorizationUrl, numbersRequests, standsIn } = found;
  return network.configure({
    ...Object.fromEntries(changed),
    authorizationUrl:
      authorizationUrl === undefined
        ? settings.authorizationUrl
        : authorizationUrl === ""
          ? null
          : authorizationUrl,
    authorizationSecret: authorizationSecret ?? settings.authorizationSecret,
    standsIn: standsIn === undefined ? settings.standsIn : standsIn === "approve" ? "approve" : "decline",
    amountFalls: amountFalls === undefined ? settings.amountFalls : amountFalls === "true",
    numbersRequests: numbersRequests === undefined ? settings.numbersRequests : numbersRequests === "true",
  });
}

/** Answers a call; null if the path is unknown. Throws `CallRefused`. */
export async function answerCall(
  network: CardNetwork,
  method: string,
  path: string,
  form: string,
): Promise<unknown> {
  const fields = fieldsOf(form);
  for (const [routeMethod, pattern, handle] of ROUTES) {
    const match = method === routeMethod ? pattern.exec(path) : null;
    if (match !== null) return await handle({ network, fields, id: match[1] ?? "" });
  }
  throw new CallRefused(`Unrecognized request URL (${method}: ${path}).`, 404, "resource_missing");
}
