import type {
  FactorDocument,
  InviteDocument,
  OrganizationDocument,
  PasskeyDocument,
  Plan,
  SecondFactorKind,
  UserDocument,
} from "../store/identity-documents.ts";
import type { Role } from "../contract/types.ts";
import { isAdministrative } from "../domain/roles.ts";
import type { z } from "zod";
import type { boundTo } from "../contract/records.ts";
import type { Bound } from "../domain/binding.ts";

type BindingView = z.output<typeof boundTo>;

export interface UserView {
  readonly id: string;
  readonly name: string;
  readonly email: string;
  readonly emailVerified: boolean;
  readonly role: Role;
  readonly binding: BindingView;
  readonly createdAt: string;
  readonly secondFactors: readonly SecondFactorKind[];
}

export interface OrganizationView {
  readonly id: string;
  readonly name: string;
  readonly plan: Plan;
  readonly status: OrganizationDocument["status"];
}

/** Returns the part of the organization in which a person acts, or an invited one will. */
const bindingView = (bound: Bound | null | undefined): BindingView =>
  bound === null || bound === undefined
    ? { type: "organization" }
    : { type: bound.type, ids: [...bound.ids] };

export const userView = (user: UserDocument, factors: readonly FactorDocument[]): UserView => ({
  id: user._id,
  name: user.name,
  email: user.email,
  emailVerified: user.emailVerified,
  role: user.role,
  binding: bindingView(user.binding),
  createdAt: user.createdAt.toISOString(),
  secondFactors: confirmedFactorKinds(factors),
});

export const organizationView = (organization: OrganizationDocument): OrganizationView => ({
  id: organization._id,
  name: organization.name,
  plan: organization.plan,
  status: organization.status,
});

export const inviteView = ({
  _id,
  binding,
  createdAt,
  createdBy,
  email,
  expiresAt,
  mail,
  role,
}: InviteDocument) => ({
  id: _id,
  email,
  role,
  binding: bindingView(binding),
  delivery: mail?.state ?? ("link" as const),
  createdBy,
  createdAt: createdAt.toISOString(),
  expiresAt: expiresAt.toISOString(),
});

/** Returns the kinds of second factor in force, each once, in a fixed order. */
export const confirmedFactorKinds = (factors: readonly FactorDocument[]): SecondFactorKind[] => {
  const kinds = new Set(factors.filter(isInForce).map(({ kind }) => kind));
  return (["totp", "passkey"] as const).filter((kind) => kinds.has(kind));
};

/** Whether a factor is in force: a passkey from its enrolment on, TOTP once confirmed. */
export const isInForce = (factor: FactorDocument): boolean =>
  factor.kind === "passkey" || factor.confirmed !== null;

/**
 * Advice to a user without a second factor, recommended to those with rights that need step-up. Null if there is none.
 */
export type FactorEnrolment = "required" | "recommended" | null;

export function factorEnrolment(
  { role, secondFactorRequired }: UserDocument,
  factors: readonly FactorDocument[],
): FactorEnrolment {
  if (factors.some(isInForce)) return null;
  if (secondFactorRequired === true) return "required";
  return isAdministrative(role) ? "recommended" : null;
}

export const isPasskey = (factor: FactorDocument): factor is PasskeyDocument => factor.kind === "passkey";
