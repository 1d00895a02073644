import { z } from "zod";
import { manages, person, reads } from "../access.ts";
import { define } from "../define.ts";
import { name, walletAddress } from "../primitives.ts";
import { railModes } from "../rails.ts";
import { DASHBOARD_PER_MINUTE } from "../rate-classes.ts";
import { organization, wallet } from "../records.ts";
import { stop, STOPS, whoStops } from "../stops.ts";
import { timezone } from "../timezone.ts";
import type { PersonRequirements } from "../types.ts";

const TIMEZONE =
  "IANA time zone that time-of-day rules start with in the dashboard; null: that of the person.";

const settings = z.strictObject({
  organization: organization.extend({
    walletOwner: z
      .string()
      .nullable()
      .meta({
        description:
          "The address that owns the wallets of agents created from now on; null: nobody, and new agents have no wallet (on the " +
          "sandbox's chain: the demo owner, whose key everybody knows).",
      }),
    treasury: wallet.nullable().meta({
      description:
        "The address at which the organization is sent money; null: it has none, or the chain does not answer.",
    }),
    requireSecondFactor: z.boolean(),
    timezone: z.string().nullable().meta({ description: TIMEZONE }),
    limits: z
      .strictObject({
        restPerMinute: z.int().meta({
          description:
            "Requests over REST per minute, for each key or person. The dashboard counts apart: each person has " +
            `${DASHBOARD_PER_MINUTE} requests per minute there, on every plan.`,
        }),
        mcpPerMinute: z.int().meta({ description: "Requests over MCP per minute, for each key." }),
      })
      .meta({ description: "What its plan allows; an enterprise plan may have limits of its own." }),
    rails: railModes.meta({ description: "Whether payments of each rail move real money." }),
  }),
});

export const getOrganization = define({
  summary: "Read the organization",
  description: "The caller's organization with its settings.",
  tag: "Organization",
  access: reads("never", "none"),
  rate: "standard",
  http: { method: "get", path: "/v1/organization", successStatus: 200 },
  output: settings,
  errors: [],
});

const ofOwners = z.union([
  z.object({ walletOwner: z.string().nullable() }),
  z.object({ requireSecondFactor: z.boolean() }),
]);

/** Owners and admins may change name and time zone, which decide nothing; only owners may change the rest. */
const settingsRequirements = (body: unknown): PersonRequirements | null =>
  ofOwners.safeParse(body).success ? { role: "owner", stepUp: true } : null;

export const updateOrganization = define({
  summary: "Change the organization's settings",
  description:
    "Fields that are left out stay unchanged. `name` and `timezone` are changed by an owner or admin, everything else " +
    "by an owner with step-up. `walletOwner` is the address of a key that the organization holds and " +
    "the service never does: it can withdraw everything, and replace or remove the service. The owner proves its key by " +
    "`walletOwnerSignature`: where wallets hold real money, a request without it is refused with the text to sign " +
    "(`WALLET_OWNER_UNPROVEN`). It applies to agents " +
    "created from now on; the owner of an existing wallet transfers its ownership on chain. With " +
    "`requireSecondFactor`, from their next request on, people without a second factor can only enrol one (else 403 " +
    "`SECOND_FACTOR_ENROLMENT_REQUIRED`), and nobody can remove their last one. Organization keys and agents are not " +
    "affected.",
  tag: "Organization",
  access: { ...person({ role: "admin" }), requirementsOf: settingsRequirements },
  rate: "standard",
  http: { method: "patch", path: "/v1/organization", successStatus: 200 },
  body: z.strictObject({
    name: name.optional(),
    timezone: timezone.nullable().optional(),
    walletOwner: walletAddress.nullable().optional(),
    walletOwnerSignature: z
      .string()
      .regex(/^0x(?:[0-9a-fA-F]{2}){1,4096}$/)
      .optional(),
    requireSecondFactor: z.boolean().optional(),
  }),
  output: settings,
  errors: ["WALLET_OWNER_UNPROVEN"],
});

export const stopOrganization = define({
  ...stop,
  summary: "Stop all agents of the organization",
  description:
    `The emergency stop of everything: pauses every agent, in one decision of each project. ${STOPS} If some projects do not answer in ` +
    "time it is 503 and names them; all others are stopped. Repeat it then.",
  tag: "Organization",
  access: { ...manages("never", "organization"), ...whoStops },
  http: { method: "post", path: "/v1/organization/stop", successStatus: 200 },
  errors: [],
});
