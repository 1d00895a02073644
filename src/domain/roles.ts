/** Roles of people, lowest first. An auditor reads and changes nothing. */
export const ROLES = ["auditor", "member", "admin", "owner"] as const;
export type Role = (typeof ROLES)[number];

export const outranks = (role: Role, other: Role): boolean => ROLES.indexOf(role) > ROLES.indexOf(other);

/** Whether a role is above those that only decide and read. */
export const isAdministrative = (role: Role): boolean => outranks(role, "member");
