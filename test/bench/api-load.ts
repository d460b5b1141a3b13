/**
 * The client side of the API's benchmarks, in a process of its own. Plain sockets and prepared bytes: what is measured is the node.
 * Reads one JSON line of orders from standard input and writes one JSON line of results.
 */
import { connect, type Socket } from 'node:net';
import { createInterface } from 'node:readline';

export type LoadOrder =
  | {
      readonly kind: 'requests';
      readonly port: number;
      readonly connections: number;
      readonly seconds: number;
      /** Requests per second in all; 0 sends the next as soon as the last is answered. */
      readonly perSecond: number;
      readonly requests: readonly string[];
    }
  | { readonly kind: 'subscribers'; readonly port: number; readonly count: number; readonly events: number }
  /** All at once, in turn on some connections, without waiting for answers; then until the last answer is here. */
  | {
      readonly kind: 'burst';
      readonly port: number;
      readonly connections: number;
      readonly count: number;
      readonly requests: readonly string[];
    };
export type LoadResult = {
  readonly answered: number;
  readonly failed: number;
  readonly seconds: number;
  readonly p50: number;
  readonly p99: number;
  /** Per event, when each subscriber had it. */
  readonly arrivals?: readonly (readonly number[])[];
};

const now = (): number => performance.timeOrigin + performance.now();

const percentile = (values: number[], part: number): number =>
  values.sort((a, b) => a - b)[Math.min(values.length - 1, Math.floor(values.length * part))] ?? 0;

/** One connection, one request at a time; resolves with the status when the whole answer is here. */
class Asker {
  readonly #socket: Socket;
  #left = -1;
  #status = 0;
  #head = '';
  #done: ((status: number) => void) | undefined;

  constructor(port: number) {
    this.#socket = connect(port, '127.0.0.1');
    this.#socket.setNoDelay(true);
    this.#socket.on('data', (data) => this.#take(data));
    this.#socket.on('error', () => this.#finish(0));
    this.#socket.on('close', () => this.#finish(0));
  }

  ask(request: string): Promise<number> {
    return new Promise((resolve) => {
      this.#done = resolve;
      this.#socket.write(request);
    });
  }

  #take(data: Buffer): void {
    if (this.#left < 0) {
      this.#head += data.toString('latin1');
      const end = this.#head.indexOf('\r\n\r\n');
      if (end < 0) return;
      this.#status = Number(this.#head.slice(9, 12));
      const length = Number(/content-length: (\d+)/i.exec(this.#head)?.[1] ?? 0);
      this.#left = length - (this.#head.length - end - 4);
      this.#head = '';
    } else this.#left -= data.length;
    if (this.#left <= 0) this.#finish(this.#status);
  }

  #finish(status: number): void {
    this.#left = -1;
    const done = this.#done;
    this.#done = undefined;
    done?.(status);
  }

  close(): void {
    this.#socket.destroy();
  }
}

async function requests(order: Extract<LoadOrder, { kind: 'requests' }>): Promise<LoadResult> {
  const askers = Array.from({ length: order.connections }, () => new Asker(order.port));
  const times: number[] = [];
  let failed = 0;
  let sent = 0;
  const began = now();
  const until = began + order.seconds * 1000;
  await Promise.all(
    askers.map(async (asker) => {
      for (;;) {
        const number = sent++;
        // A request is timed from when it was due: a slow answer delays those behind it, and that counts.
        const due = order.perSecond === 0 ? now() : began + (number * 1000) / order.perSecond;
        if (due >= until) return;
        const wait = due - now();
        if (wait > 0) await new Promise((resolve) => setTimeout(resolve, wait));
        const status = await asker.ask(order.requests[number % order.requests.length] as string);
        if (status === 200) times.push(now() - (order.perSecond === 0 ? due : Math.max(due, due + Math.min(0, wait))));
        else failed++;
        if (now() >= until) return;
      }
    }),
  );
  for (const asker of askers) asker.close();
  const seconds = (now() - began) / 1000;
  return { answered: times.length, failed, seconds, p50: percentile(times, 0.5), p99: percentile(times, 0.99) };
}

const HANDSHAKE =
  'GET /v1/ws HTTP/1.1\r\nhost: x\r\nconnection: Upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\n' +
  'sec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA==\r\nsec-websocket-protocol: svc.node-api.v1\r\n\r\n';

/** A masked text frame with a mask of zeros. */
function clientFrame(text: string): Buffer {
  const payload = Buffer.from(text);
  return Buffer.concat([Buffer.from([0x81, 0x80 | payload.length, 0, 0, 0, 0]), payload]);
}

async function subscribers(order: Extract<LoadOrder, { kind: 'subscribers' }>): Promise<LoadResult> {
  const subscribe = clientFrame('{"type":"subscribe","data":{"id":1,"topic":"cuts"}}');
  const arrivals: number[][] = Array.from({ length: order.events }, () => []);
  let ready = 0;
  let finished: (() => void) | undefined;
  const done = new Promise<void>((resolve) => {
    finished = resolve;
  });
  const sockets: Socket[] = [];
  for (let i = 0; i < order.count; i++) {
    const socket = connect(order.port, '127.0.0.1');
    sockets.push(socket);
    let text = '';
    let open = false;
    let events = -1;
    socket.on('connect', () => socket.write(HANDSHAKE));
    socket.on('error', () => undefined);
    socket.on('data', (data) => {
      if (!open) {
        text += data.toString('latin1');
        if (text.includes('\r\n\r\n')) {
          open = true;
          socket.write(subscribe);
        }
        return;
      }
      // Each frame comes alone: the events are far apart.
      if (events === -1) {
        events = 0;
        if (++ready === order.count) process.stdout.write('ready\n');
        return;
      }
      if (events < order.events) arrivals[events++]?.push(now());
      if (arrivals[order.events - 1]?.length === order.count) finished?.();
    });
    if (i % 250 === 249) await new Promise((resolve) => setTimeout(resolve, 20));
  }
  await done;
  for (const socket of sockets) socket.destroy();
  return { answered: order.count, failed: 0, seconds: 0, p50: 0, p99: 0, arrivals };
}

/** Counts of answers by whether they were served. A connection that the node ends counts what it answered until then. */
async function burst(order: Extract<LoadOrder, { kind: 'burst' }>): Promise<LoadResult> {
  const began = now();
  let [served, refused] = [0, 0];
  const one = (i: number): Promise<void> =>
    new Promise((resolve) => {
      const mine: string[] = [];
      for (let at = i; at < order.count; at += order.connections)
        mine.push(order.requests[at % order.requests.length] as string);
      const socket = connect(order.port, '127.0.0.1');
      let [left, head, answered] = [0, '', 0];
      const take = (data: Buffer): void => {
        for (let at = 0; at < data.length; ) {
          if (left > 0) {
            const part = Math.min(left, data.length - at);
            left -= part;
            at += part;
          } else {
            head += String.fromCharCode(data[at++] as number);
            if (!head.endsWith('\r\n\r\n')) continue;
            left = Number(/content-length: (\d+)/i.exec(head)?.[1] ?? 0);
            if (head.slice(9, 12) === '200') served++;
            else refused++;
            answered++;
            head = '';
          }
          if (left === 0 && answered === mine.length) socket.destroy();
        }
      };
      socket.on('connect', () => socket.write(mine.join('')));
      socket.on('data', take);
      socket.on('error', () => undefined);
      socket.on('close', () => resolve());
    });
  await Promise.all(Array.from({ length: order.connections }, (_, i) => one(i)));
  return { answered: served, failed: refused, seconds: (now() - began) / 1000, p50: 0, p99: 0 };
}

async function follow(order: LoadOrder): Promise<LoadResult> {
  if (order.kind === 'requests') return requests(order);
  return order.kind === 'burst' ? burst(order) : subscribers(order);
}

for await (const line of createInterface({ input: process.stdin })) {
  const order = JSON.parse(line) as LoadOrder;
  process.stdout.write(`${JSON.stringify(await follow(order))}\n`);
}
