import { promiseHooks } from "node:v8";

/**
 * Loaded before a process of tests and each of its threads. For every promise of a workflow, Temporal's SDK formats a
 * stack trace through the bundle's source map, for a query that no test sends: a quarter of the workflows' time.
 */
const { createHook } = promiseHooks;

// Node's own hooks, by which AsyncLocalStorage follows promises, have a `before`.
promiseHooks.createHook = (callbacks) =>
  callbacks.before === undefined ? () => undefined : createHook(callbacks);
