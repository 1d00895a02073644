import type { ClientOptions, WorkflowClientInterceptor } from "@temporalio/client";
import { ApplicationFailure, type DataConverter } from "@temporalio/common";
import type { ActivityInterceptorsFactory, WorkerOptions } from "@temporalio/worker";
import { newUuid } from "../lib/ids.ts";
import { builtFile } from "../lib/package-root.ts";
import {
  answered,
  enveloped,
  forActivity,
  forQuery,
  forSignal,
  forStart,
  forUpdate,
  openMessage,
} from "../messages/envelope.ts";
import { type OnRefused, type PayloadCodecOptions, SealingCodec } from "./payload-codec.ts";

export interface TemporalPayloads {
  /** Opens payloads for a reader, so that a refused one is reported to nobody else. */
  readonly codec: SealingCodec;
  readonly client: Required<Pick<ClientOptions, "dataConverter" | "interceptors">>;
  readonly worker: Required<Pick<WorkerOptions, "dataConverter" | "interceptors">>;
}

export interface TemporalPayloadsOptions extends Omit<PayloadCodecOptions, "onRefused"> {
  readonly onRefused?: OnRefused;
  /** Epoch milliseconds; tests with a time-skipping engine supply their own. */
  readonly now?: () => number | Promise<number>;
}

/** Type of the failure of an activity whose input was not made by this service. */
export const INPUT_REFUSED = "ActivityInputRefused";

export function openPayloads({
  isEncrypted,
  keys,
  now = Date.now,
  onRefused = () => undefined,
}: TemporalPayloadsOptions): TemporalPayloads {
  const dataConverter: DataConverter = {
    payloadCodecs: [new SealingCodec({ isEncrypted, keys, onRefused })],
    failureConverterPath: builtFile("src/messages/failure-converter.ts"),
  };
  return {
    codec: new SealingCodec({ isEncrypted, keys, onRefused: () => undefined }),
    client: { dataConverter, interceptors: { workflow: [sendingEnvelopes(now)] } },
    worker: { dataConverter, interceptors: { activity: [openingEnvelopes] } },
  };
}

const sendingEnvelopes = (now: () => number | Promise<number>): WorkflowClientInterceptor => ({
  startWithDetails: (input, next) => next({ ...input, options: startOptions(input) }),

  signal: (input, next) => next({ ...input, args: enveloped(forSignal(input.signalName), input.args) }),

  signalWithStart: (input, next) =>
    next({
      ...input,
      options: startOptions(input),
      signalArgs: enveloped(forSignal(input.signalName), input.signalArgs),
    }),

  async startUpdate(input, next) {
    const { updateId = newUuid() } = input.options;
    const args = enveloped(forUpdate(input.updateName, updateId), input.args, await now());
    return next({ ...input, args, options: { ...input.options, updateId } });
  },

  query: (input, next) =>
    next(
      input.args.length === 0 ? input : { ...input, args: enveloped(forQuery(input.queryType), input.args) },
    ),
});

function startOptions<T extends { readonly args: unknown[] }>({
  options,
  workflowType,
}: {
  readonly options: T;
  readonly workflowType: string;
}): T {
  return { ...options, args: enveloped(forStart(workflowType), options.args) };
}

const openingEnvelopes: ActivityInterceptorsFactory = ({ info: { activityType } }) => ({
  inbound: {
    async execute(input, next) {
      const purpose = forActivity(activityType);
      const opened = openMessage(purpose, input.args);
      if (opened.ok) return answered(purpose, await next({ ...input, args: [...opened.value.args] }));
      throw ApplicationFailure.create({
        type: INPUT_REFUSED,
        message: `the input was not made by this service: ${opened.refused}`,
        // Another worker may have the key.
        nonRetryable: opened.refused !== "unknown_key",
      });
    },
  },
});
