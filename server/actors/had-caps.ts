import type { Db } from "mongodb";
import { COLLECTIONS, type ProjectDocument } from "../../activities/documents.ts";

/** Whether a project's budget was ever replaced, as its record says: then it may have caps. */
export type HadCaps = (projectId: string) => Promise<boolean>;

/** From the primary, also where the connection says otherwise: what was noted before a cap was answered is seen. */
export function hadCapsIn(db: Db): HadCaps {
  const projects = db.collection<ProjectDocument>(COLLECTIONS.projects, { readPreference: "primary" });
  return async (_id) => (await projects.findOne({ _id }, { projection: { hadCaps: 1 } }))?.hadCaps === true;
}
