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

/** A person as the API shows them. */
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

/** An organization as the API shows it. */
export interface OrganizationView {
  readonly id: string;
  readonly name: string;
  readonly plan: Plan;
  readonly status: OrganizationDocument["status"];
}

/** The part of the organization that a person acts in, or an invited one will. */
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

/** An invite as the API shows it. */
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

/** The kinds of second factor in force, each once, in the same order always. */
export const confirmedFactorKinds = (factors: readonly FactorDocument[]): SecondFactorKind[] => {
  const kinds = new Set(factors.filter(isInForce).map(({ kind }) => kind));
  return (["totp", "passkey"] as const).filter((kind) => kinds.has(kind));
};

/** A passkey is from its enrolment on; a TOTP enrolment that was never confirmed is not. */
export const isInForce = (factor: FactorDocument): boolean =>
  factor.kind === "passkey" || factor.confirmed !== null;

/** Advice to a user without a second factor: those who can step up have much to lose. Null: none. */
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
