/**
 * The client's end of /v1/ws (specification: Events, Node sockets): subscriptions that survive a lost connection, and reads over the
 * same socket. Nothing is replayed there, so after every reconnect each subscriber gets `resync_required` and reads
 * current state over HTTP.
 */
import { ApiError, backoffMillis } from './client-calls.ts';
import { type Frame, parseFrame, type SocketLike, type StreamDependencies, socketUrl } from './client-socket.ts';
import { LIVE_EVENTS, type LiveEvent, type LiveEventType, type ResyncReason, type Topic } from './frames.ts';
import { SOCKETS } from './routes.ts';
import { check } from './schema.ts';

export type LiveMessage =
  | LiveEvent
  | { readonly type: 'resync_required'; readonly data: { readonly reason: ResyncReason | 'reconnected' } };

export type LiveTopic =
  | { readonly topic: Exclude<Topic, 'addresses' | 'transaction'> }
  | { readonly topic: 'addresses'; readonly addresses: readonly string[] }
  | { readonly topic: 'transaction'; readonly transaction_id: string };

type Subscription = {
  readonly wanted: LiveTopic;
  readonly listener: (message: LiveMessage) => void;
  /** The server's number on the present connection. */
  number: number | undefined;
};
type Waiting = { resolve: (frame: Frame) => void; reject: (error: ApiError) => void };
type Taken = (frame: Frame) => void;

export type LiveOptions = {
  readonly baseUrl: string;
  /** Called when the server refuses a subscription after a reconnect; a first refusal goes to the caller of `subscribe`. */
  readonly onRefused?: (topic: LiveTopic, error: ApiError) => void;
};

export type LiveClient = {
  /** Resolves when the server accepted the subscription; the result unsubscribes. */
  subscribe(topic: LiveTopic, listener: (message: LiveMessage) => void): Promise<() => void>;
  /** Reads a GET route over the socket. */
  request(path: string): Promise<{ readonly status: number; readonly body: unknown }>;
  ping(): Promise<void>;
  close(): void;
};

const isLiveEvent = (type: unknown): type is LiveEventType =>
  typeof type === 'string' && Object.hasOwn(LIVE_EVENTS, type);

export function openLiveClient(options: LiveOptions, dependencies: StreamDependencies): LiveClient {
  const subscriptions = new Set<Subscription>();
  const byNumber = new Map<number, Subscription>();
  const waiting = new Map<number, Waiting>();
  let socket: SocketLike | undefined;
  let ready: Promise<SocketLike> | undefined;
  let nextId = 1;
  let closed = false;
  let failures = 0;

  /** `taken` runs before the next frame is processed: an event may follow its subscription in the same packet. */
  function ask(open: SocketLike, type: string, data: Record<string, unknown>, taken?: Taken): Promise<Frame> {
    const id = nextId++;
    return new Promise<Frame>((resolve, reject) => {
      const settle: Taken = (frame) => {
        taken?.(frame);
        resolve(frame);
      };
      waiting.set(id, { resolve: settle, reject });
      open.send(JSON.stringify({ type, data: { id, ...data } }));
    });
  }

  function take(data: unknown): void {
    const frame = parseFrame(data);
    const { id, subscription } = frame.data;
    if (frame.type === 'notification') {
      const event = frame.data.event as LiveEvent | null | undefined;
      // Unknown events of a newer server are ignored; malformed known ones are dropped.
      if (!isLiveEvent(event?.type)) return;
      if (check(LIVE_EVENTS[event.type], event.data, '', { unknownFields: 'ignore' }) !== undefined) return;
      byNumber.get(subscription as number)?.listener(event);
    } else if (frame.type === 'resync_required') {
      byNumber
        .get(subscription as number)
        ?.listener({ type: 'resync_required', data: { reason: frame.data.reason as ResyncReason } });
    } else {
      const asker = waiting.get(id as number);
      waiting.delete(id as number);
      if (frame.type === 'error') asker?.reject(new ApiError(String(frame.data.code), 0, String(frame.data.message)));
      else asker?.resolve(frame);
    }
  }

  function lost(open: SocketLike): void {
    if (socket !== open && socket !== undefined) return;
    socket = undefined;
    ready = undefined;
    byNumber.clear();
    for (const asker of waiting.values())
      asker.reject(new ApiError('client_unreachable', 0, 'the connection was lost'));
    waiting.clear();
    for (const subscription of subscriptions) subscription.number = undefined;
    if (!closed && subscriptions.size > 0) void recover();
  }

  async function recover(): Promise<void> {
    await dependencies.sleep(backoffMillis(failures++, dependencies.random));
    if (closed || subscriptions.size === 0) return;
    let open: SocketLike;
    try {
      open = await connect();
    } catch {
      return;
    }
    for (const subscription of [...subscriptions]) {
      if (subscription.number !== undefined) continue;
      try {
        await establish(open, subscription);
        subscription.listener({ type: 'resync_required', data: { reason: 'reconnected' } });
      } catch (error) {
        if (!(error instanceof ApiError)) throw error;
        if (error.code === 'client_unreachable') return;
        subscriptions.delete(subscription);
        options.onRefused?.(subscription.wanted, error);
      }
    }
  }

  function connect(): Promise<SocketLike> {
    if (closed) return Promise.reject(new ApiError('client_closed', 0, 'the client was closed'));
    ready ??= new Promise<SocketLike>((resolve, reject) => {
      const open = new dependencies.WebSocket(socketUrl(options.baseUrl, SOCKETS.live.path), [
        SOCKETS.live.subprotocol,
      ]);
      socket = open;
      let ended = false;
      const end = () => {
        if (ended) return;
        ended = true;
        reject(new ApiError('client_unreachable', 0, `no connection to ${options.baseUrl}`));
        lost(open);
      };
      open.addEventListener('open', () => {
        failures = 0;
        resolve(open);
      });
      open.addEventListener('message', (event) => {
        try {
          take(event.data);
        } catch (error) {
          if (!(error instanceof ApiError)) throw error;
          open.close(1000);
        }
      });
      open.addEventListener('close', end);
      open.addEventListener('error', end);
    });
    return ready;
  }

  async function establish(open: SocketLike, subscription: Subscription): Promise<void> {
    await ask(open, 'subscribe', { ...subscription.wanted }, (answer) => {
      subscription.number = answer.data.subscription as number;
      byNumber.set(subscription.number, subscription);
    });
  }

  function drop(subscription: Subscription): void {
    subscriptions.delete(subscription);
    if (subscription.number === undefined || socket === undefined) return;
    byNumber.delete(subscription.number);
    ask(socket, 'unsubscribe', { subscription: subscription.number }).catch(() => undefined);
  }

  return {
    async subscribe(wanted, listener) {
      const subscription: Subscription = { wanted, listener, number: undefined };
      await establish(await connect(), subscription);
      subscriptions.add(subscription);
      return () => drop(subscription);
    },
    async request(path) {
      const answer = await ask(await connect(), 'request', { path });
      return { status: answer.data.status as number, body: answer.data.body };
    },
    async ping() {
      await ask(await connect(), 'ping', {});
    },
    close() {
      closed = true;
      socket?.close(1000);
    },
  };
}
