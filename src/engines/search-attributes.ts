import type { OperatorService } from "@temporalio/client";
import proto from "@temporalio/proto";
import { ConfigError } from "../lib/config-error.ts";
import type { TemporalDevConfig } from "./temporal-config.ts";

const { IndexedValueType } = proto.temporal.api.enums.v1;

type SearchAttributes = TemporalDevConfig["searchAttributes"];

/** Protocol numbers of the types of search attributes used here. */
const INDEXED_VALUE_TYPES: Readonly<
  Record<SearchAttributes[string], proto.temporal.api.enums.v1.IndexedValueType>
> = {
  Text: IndexedValueType.INDEXED_VALUE_TYPE_TEXT,
  Keyword: IndexedValueType.INDEXED_VALUE_TYPE_KEYWORD,
  Int: IndexedValueType.INDEXED_VALUE_TYPE_INT,
  Double: IndexedValueType.INDEXED_VALUE_TYPE_DOUBLE,
  Bool: IndexedValueType.INDEXED_VALUE_TYPE_BOOL,
  Datetime: IndexedValueType.INDEXED_VALUE_TYPE_DATETIME,
  KeywordList: IndexedValueType.INDEXED_VALUE_TYPE_KEYWORD_LIST,
};

/** Registers missing attributes; resolves to their names. Throws `ConfigError` for one of another type. */
export async function addMissingAttributes(
  operator: OperatorService,
  namespace: string,
  declared: SearchAttributes,
): Promise<readonly string[]> {
  const { customAttributes } = await operator.listSearchAttributes({ namespace });
  const other = Object.entries(declared).find(
    ([name, type]) => (customAttributes[name] ?? INDEXED_VALUE_TYPES[type]) !== INDEXED_VALUE_TYPES[type],
  );
  if (other !== undefined) {
    const [name, type] = other;
    throw new ConfigError(
      `TEMPORAL_NAMESPACE: ${namespace} has a search attribute ${name} that is no ${type}; use another namespace.`,
    );
  }
  const missing = Object.entries(declared).filter(([name]) => !(name in customAttributes));
  if (missing.length === 0) return [];
  const searchAttributes = Object.fromEntries(
    missing.map(([name, type]) => [name, INDEXED_VALUE_TYPES[type]]),
  );
  await operator.addSearchAttributes({ namespace, searchAttributes });
  return Object.keys(searchAttributes);
}
