import type {
  FactorDocument,
  OrganizationDocument,
  Plan,
  Role,
  SecondFactorKind,
  UserDocument,
} from "./documents.ts";

/** A person as the API shows them. */
export interface UserView {
  readonly id: string;
  readonly name: string;
  readonly email: string;
  readonly role: Role;
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

export const userView = (user: UserDocument, factors: readonly FactorDocument[]): UserView => ({
  id: user._id,
  name: user.name,
  email: user.email,
  role: user.role,
  createdAt: user.createdAt.toISOString(),
  secondFactors: confirmedFactorKinds(factors),
});

export const organizationView = (organization: OrganizationDocument): OrganizationView => ({
  id: organization._id,
  name: organization.name,
  plan: organization.plan,
  status: organization.status,
});

/** The kinds of second factor in force; an enrolment that was never confirmed is none. */
export const confirmedFactorKinds = (factors: readonly FactorDocument[]): SecondFactorKind[] =>
  factors.filter((factor) => factor.confirmed !== null).map((factor) => factor.kind);
