import { Connection, type ConnectionOptions, isGrpcServiceError } from "@temporalio/client";
import { endCallContext } from "../lib/call-context.ts";
import { GrpcRetries } from "../lib/grpc-retries.ts";
import { firstLineOf } from "../lib/plain-error.ts";
import { EngineUnreachable } from "./engine-unreachable.ts";

/** TLS settings and credentials of the operator's own Temporal. */
export interface TemporalSecurity {
  readonly options: Pick<ConnectionOptions, "tls" | "metadata"> & { readonly apiKey?: string };
  /** Names of the settings in force, for messages. */
  readonly settings: readonly string[];
}

const CONNECT_TIMEOUT_MS = 5_000;
const REASON_TIMEOUT_MS = 2_000;

/** Distributes calls over all addresses of a host name with several frontends, and skips those that are down. */
const ROUND_ROBIN = JSON.stringify({ loadBalancingConfig: [{ round_robin: {} }] });

/** Connection that exposes its channel. */
class ChannelConnection extends Connection {
  static open(options: ConnectionOptions): ChannelConnection {
    const made = this.lazy({ ...options, channelArgs: { "grpc.service_config": ROUND_ROBIN } });
    if (made instanceof ChannelConnection) return made;
    throw new Error("the Temporal SDK made a connection of another class");
  }

  get channel() {
    return this.client.getChannel();
  }
}

type Channel = ChannelConnection["channel"];

/** Passes each call to the current channel; calls in flight finish on the channel they began on. */
class RenewableChannel implements Channel {
  current: Channel;

  constructor(first: Channel) {
    this.current = first;
  }

  createCall(...call: Parameters<Channel["createCall"]>): ReturnType<Channel["createCall"]> {
    return this.current.createCall(...call);
  }

  getConnectivityState(tryToConnect: boolean): ReturnType<Channel["getConnectivityState"]> {
    return this.current.getConnectivityState(tryToConnect);
  }

  watchConnectivityState(...watch: Parameters<Channel["watchConnectivityState"]>): void {
    this.current.watchConnectivityState(...watch);
  }

  getTarget(): string {
    return this.current.getTarget();
  }

  getChannelzRef(): ReturnType<Channel["getChannelzRef"]> {
    return this.current.getChannelzRef();
  }

  close(): void {
    this.current.close();
  }
}

export interface TemporalConnection {
  readonly connection: Connection;
  /** Connects anew and moves all further calls there. Throws `EngineUnreachable`, then changing nothing. */
  readonly renew: (security: TemporalSecurity) => Promise<void>;
  close(): Promise<void>;
}

/** Connects to Temporal. Throws `EngineUnreachable`, which names the settings in force. */
export async function connectTemporal(
  address: string,
  security: TemporalSecurity | null,
): Promise<TemporalConnection> {
  const channel = new RenewableChannel((await opened(address, security)).channel);
  let apiKey = security?.options.apiKey;
  const retries = new GrpcRetries();
  const connection = Connection.lazy({
    address,
    channelArgs: { channelOverride: channel },
    interceptors: [retries.interceptor],
    metadata: security?.options.metadata ?? {},
    tls: false,
    apiKey: () => apiKey ?? "",
  });
  return {
    connection,
    renew: async (renewed) => {
      const next = await opened(address, renewed);
      const previous = channel.current;
      channel.current = next.channel;
      ({ apiKey } = renewed.options);
      previous.close();
    },
    async close() {
      await retries.end();
      await connection.close();
      endCallContext(connection);
    },
  };
}

async function opened(address: string, security: TemporalSecurity | null): Promise<ChannelConnection> {
  const options = { address, connectTimeout: CONNECT_TIMEOUT_MS, interceptors: [], ...security?.options };
  let made: ChannelConnection | null = null;
  try {
    made = ChannelConnection.open(options);
    await made.ensureConnected();
    return made;
  } catch (error) {
    const reason = made === null ? firstLineOf(error) : await reasonOf(made, error);
    await made?.close();
    throw unreachable(address, security, reason, error);
  } finally {
    // Only the channel is used from here on.
    if (made !== null) endCallContext(made);
  }
}

export function unreachable(
  address: string,
  security: TemporalSecurity | null,
  reason: string,
  cause: unknown,
): EngineUnreachable {
  const names = ["TEMPORAL_ADDRESS", ...(security?.settings ?? [])].join(", ");
  return new EngineUnreachable(`Temporal is not reachable at ${address} (${names}): ${reason}`, { cause });
}

/** Returns why a connection failed. The connection's own error gives no cause; the error of a call on it does. */
async function reasonOf(connection: Connection, error: unknown): Promise<string> {
  if (error instanceof Error && isGrpcServiceError(error.cause)) return firstLineOf(error.cause.details);
  try {
    await connection.withDeadline(Date.now() + REASON_TIMEOUT_MS, () =>
      connection.workflowService.getSystemInfo({}),
    );
  } catch (later) {
    if (isGrpcServiceError(later)) return firstLineOf(later.details);
  }
  return firstLineOf(error);
}
