import { randomBytes, randomUUID } from "node:crypto";
import type { Role } from "../../src/contract/types.ts";
import { PASSWORD } from "./service.ts";
import type { Success } from "./contract-api.ts";
import { noteSecret } from "./secrets.ts";
import { elevate, type World } from "./world.ts";

export type { Role };

export interface Person {
  readonly id: string;
  readonly email: string;
  readonly token: string;
}

export const newEmail = (): string => `person-${randomUUID()}@example.com`;

/** An invite whose token was answered. */
export type HandedInvite = Success<"createInvite"> & { readonly token: string };

/** Invites a person by the session's user, where nothing is mailed. */
export async function handed(
  { api }: Pick<World, "api">,
  by: string,
  body: { readonly email: string; readonly role: Role },
): Promise<HandedInvite> {
  const made = await api.ok("createInvite", 201, { token: by, body });
  if (made.token === null) throw new Error("nothing is mailed here");
  return { ...made, token: made.token };
}

/** Invites a person in the owner's name, who has just stepped up. */
export async function invite(world: World, role: Role, email = newEmail()): Promise<HandedInvite> {
  await elevate(world);
  return await handed(world, world.token, { email, role });
}

/** One more member of the world's organization, by an invite, as stepped up as everybody in it. */
export async function join(world: World, role: Role): Promise<Person> {
  const { invite: invited, token } = await invite(world, role);
  const body = { token, name: `The ${role}`, password: PASSWORD };
  const session = await world.api.ok("acceptInvite", 201, { body });
  await elevate(world);
  return { id: session.user.id, email: invited.email, token: session.token ?? "" };
}

/** A good password that no user has; the run's files and logs are searched for it. */
export function newPassword(): string {
  const password = randomBytes(12).toString("base64url");
  noteSecret(password);
  return password;
}
