import { z } from "zod";
import { MAILED_PEOPLE_MAX, MAILS_PER_HOUR_MAX } from "../../domain/approval-mails.ts";
import { ownAccount } from "../access.ts";
import { define } from "../define.ts";

const notifications = z.strictObject({
  notifications: z.strictObject({ approvalMails: z.boolean(), mailAvailable: z.boolean() }),
});

export const getNotifications = define({
  summary: "Read your notifications",
  description: "The notifications that you have chosen, and whether the service can send mail.",
  tag: "Authentication",
  access: ownAccount,
  rate: "standard",
  http: { method: "get", path: "/v1/auth/notifications", successStatus: 200 },
  output: notifications,
  errors: [],
});

export const updateNotifications = define({
  summary: "Change your notifications",
  description:
    "With `approvalMails` you receive a mail for each payment that waits for approval, at most " +
    `${MAILS_PER_HOUR_MAX} mails within an hour: further payments are collected into one mail, which lists those that ` +
    "are still undecided. The mail has a link to the approval's page and no token; nothing is decided without " +
    "signing in. It is on at first for the owner who created the organization, and off for everybody else. If " +
    `${MAILED_PEOPLE_MAX} others of the organization have it on, switching it on is 409 \`TOO_MANY_MAILED_PEOPLE\`.`,
  tag: "Authentication",
  access: ownAccount,
  rate: "standard",
  http: { method: "patch", path: "/v1/auth/notifications", successStatus: 200 },
  body: z.strictObject({ approvalMails: z.boolean() }),
  output: notifications,
  errors: ["TOO_MANY_MAILED_PEOPLE"],
});
