import { AsyncLocalStorage } from "node:async_hooks";

/**
 * Disables the storage of call contexts of a Temporal connection that makes no more calls. The SDK leaves it enabled, and
 * each enabled storage makes every promise of the process slower.
 */
export function endCallContext(connection: object): void {
  const storage: unknown = Reflect.get(connection, "callContextStorage");
  if (storage instanceof AsyncLocalStorage) storage.disable();
}
