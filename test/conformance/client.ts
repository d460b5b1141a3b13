/** A client of a few lines: HTTP, JSON-RPC, WebSocket and lines over TCP. */
import assert from 'node:assert/strict';
import { connect } from 'node:net';
import { WebSocket } from 'ws';

/** Of one wait; `--wait SECONDS` for programs that are slow. */
export const wait = { seconds: 30 };

export type Answer = {
  readonly status: number;
  readonly header: (name: string) => string | null;
  readonly text: string;
  readonly json: Record<string, unknown>;
};

/** 'Repeat after `retry_after_millis`': a node that catches up, or a client that asked too much. */
export async function ask(url: string, options: RequestInit = {}): Promise<Answer> {
  const end = performance.now() + 2000 * wait.seconds;
  for (;;) {
    const answer = await askOnce(url, options);
    const repeats = answer.status === 429 || answer.status === 503;
    const millis = repeats ? Number(/"retry_after_millis":(\d+)/.exec(answer.text)?.[1]) : Number.NaN;
    if (Number.isNaN(millis) || performance.now() + millis > end) return answer;
    await new Promise((resolve) => setTimeout(resolve, millis));
  }
}

async function askOnce(url: string, options: RequestInit): Promise<Answer> {
  const answer = await fetch(url, { ...options, signal: AbortSignal.timeout(1000 * wait.seconds) });
  const text = await answer.text();
  return {
    status: answer.status,
    header: (name) => answer.headers.get(name),
    text,
    get json() {
      return JSON.parse(text) as Record<string, unknown>;
    },
  };
}

export const get = (url: string, headers: Record<string, string> = {}): Promise<Answer> => ask(url, { headers });

export const post = (url: string, body: unknown, headers: Record<string, string> = {}): Promise<Answer> =>
  ask(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: typeof body === 'string' ? body : JSON.stringify(body),
  });

/** A document: 200, JSON, `api_version` 1. */
export async function documentAt(url: string): Promise<Record<string, unknown>> {
  const answer = await get(url);
  assert.equal(answer.status, 200, `${url}: ${answer.status} ${answer.text.slice(0, 200)}`);
  assert.match(answer.header('content-type') ?? '', /^application\/json/);
  assert.equal(answer.json.api_version, 1);
  return answer.json;
}

/** Asks until the condition holds. */
export async function until<T>(
  read: () => Promise<T>,
  holds: (value: T) => boolean,
  seconds = 2 * wait.seconds,
): Promise<T> {
  const end = performance.now() + 1000 * seconds;
  for (;;) {
    const value = await read();
    if (holds(value)) return value;
    assert.ok(performance.now() < end, `did not happen within ${seconds} s: ${JSON.stringify(value).slice(0, 200)}`);
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}

/** Messages of a stream, one at a time. */
class Inbox<T> {
  readonly #waiting: T[] = [];
  #wake: (() => void) | undefined;
  ended = false;

  add(message: T): void {
    this.#waiting.push(message);
    this.#wake?.();
  }

  end(): void {
    this.ended = true;
    this.#wake?.();
  }

  async next(): Promise<T> {
    const deadline = performance.now() + 1000 * wait.seconds;
    while (this.#waiting.length === 0) {
      assert.ok(!this.ended, 'the connection was closed');
      assert.ok(performance.now() < deadline, 'no message came');
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, deadline - performance.now());
        this.#wake = () => {
          clearTimeout(timer);
          resolve();
        };
      });
    }
    return this.#waiting.shift() as T;
  }
}

export type Frame = { readonly type: string; readonly data: Record<string, unknown> };

export class Socket {
  readonly #socket: WebSocket;
  readonly #inbox = new Inbox<unknown>();
  readonly closed: Promise<number>;

  private constructor(socket: WebSocket) {
    this.#socket = socket;
    socket.on('message', (data: Buffer) => this.#inbox.add(JSON.parse(data.toString())));
    socket.on('error', () => undefined);
    this.closed = new Promise((resolve) =>
      socket.on('close', (code: number) => {
        this.#inbox.end();
        resolve(code);
      }),
    );
  }

  /** The status of a refused handshake is the error's message. */
  static open(url: string, protocols: readonly string[] = [], headers: Record<string, string> = {}): Promise<Socket> {
    const socket = new WebSocket(url.replace(/^http/, 'ws'), [...protocols], { headers });
    const made = new Socket(socket);
    return new Promise((resolve, reject) => {
      socket.once('open', () => resolve(made));
      socket.once('unexpected-response', (_, response) => reject(new Error(`refused: ${response.statusCode}`)));
      socket.once('error', reject);
    });
  }

  get protocol(): string {
    return this.#socket.protocol;
  }

  send(message: unknown): void {
    this.#socket.send(typeof message === 'string' || message instanceof Uint8Array ? message : JSON.stringify(message));
  }

  async next(): Promise<Frame> {
    return (await this.#inbox.next()) as Frame;
  }

  /** The next of this type; others are passed over. */
  async until(type: string): Promise<Frame> {
    for (;;) {
      const frame = await this.next();
      if (frame.type === type) return frame;
    }
  }

  close(): void {
    this.#socket.terminate();
  }
}

/** Opens a socket for a check, and closes it. */
export async function withSocket<T>(
  url: string,
  protocols: readonly string[],
  use: (socket: Socket) => Promise<T>,
): Promise<T> {
  const socket = await Socket.open(url, protocols);
  try {
    return await use(socket);
  } finally {
    socket.close();
  }
}

type Line = {
  readonly id?: unknown;
  readonly method?: string;
  readonly params?: unknown;
  readonly result?: unknown;
  readonly error?: unknown;
};

/** JSON lines over TCP. */
export async function withLines<T>(
  address: string,
  use: (lines: {
    call(method: string, params: unknown): Promise<Line>;
    notice(method: string): Promise<Line>;
  }) => Promise<T>,
): Promise<T> {
  const [, host = '', port] = /^(?:\[?(.*?)\]?):(\d+)$/.exec(address) ?? [];
  const socket = connect({ host, port: Number(port) });
  const inbox = new Inbox<Line>();
  const seen: Line[] = [];
  let text = '';
  let id = 0;
  socket.on('data', (part: Buffer) => {
    text += part.toString();
    for (let end = text.indexOf('\n'); end >= 0; end = text.indexOf('\n')) {
      inbox.add(JSON.parse(text.slice(0, end)) as Line);
      text = text.slice(end + 1);
    }
  });
  socket.on('error', () => inbox.end());
  socket.on('close', () => inbox.end());
  const find = async (matches: (line: Line) => boolean): Promise<Line> => {
    const before = seen.findIndex(matches);
    if (before >= 0) return seen.splice(before, 1)[0] as Line;
    for (;;) {
      const line = await inbox.next();
      if (matches(line)) return line;
      seen.push(line);
    }
  };
  try {
    return await use({
      call(method, params) {
        const own = ++id;
        socket.write(`${JSON.stringify({ jsonrpc: '2.0', id: own, method, params })}\n`);
        return find((line) => line.id === own);
      },
      notice: (method) => find((line) => line.method === method),
    });
  } finally {
    socket.destroy();
  }
}

export const HEX_96 = /^[0-9a-f]{96}$/;
export const ATOMS = /^(0|[1-9]\d*)$/;
