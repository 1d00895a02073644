/**
 * Concurrent calls to actors. After long runs most are in no worker's memory, and while it replays a hundred of them a worker
 * takes no new tasks; the engine then says of all that wait that no worker is there.
 */
export const ACTORS_AT_ONCE = 8;
