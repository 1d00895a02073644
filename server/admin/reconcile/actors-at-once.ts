/**
 * Maximum concurrent calls to actors. After long runs most actors are in no worker's cache, and a worker that replays a
 * hundred takes no new tasks; the engine would then report all waiting calls as having no worker.
 */
export const ACTORS_AT_ONCE = 8;
