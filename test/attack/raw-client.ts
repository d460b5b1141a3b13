/** A client that does what no proper client does: bytes as they are, resets, halves of connections that it never closes. */
import { readdirSync, readlinkSync } from 'node:fs';
import { connect, type Socket } from 'node:net';

export type RawClient = {
  readonly socket: Socket;
  /** Everything that came so far, as latin1. */
  text: string;
  /** The other side said that it sends no more. */
  readonly ended: Promise<void>;
  /** The head of an answer is there, or none will come. */
  readonly answered: Promise<void>;
  /** The connection is gone on both sides. */
  readonly gone: Promise<void>;
  /** How it failed, if it did. */
  error: NodeJS.ErrnoException | undefined;
};

/** Connects and stays: it never closes its side by itself. */
export async function dial(port: number, first?: string | Uint8Array, host = '127.0.0.1'): Promise<RawClient> {
  const socket = connect({ port, host, allowHalfOpen: true });
  const ended = Promise.withResolvers<void>();
  const answered = Promise.withResolvers<void>();
  const gone = Promise.withResolvers<void>();
  const client: RawClient = {
    socket,
    text: '',
    ended: ended.promise,
    answered: answered.promise,
    gone: gone.promise,
    error: undefined,
  };
  ended.promise.then(answered.resolve);
  await new Promise<void>((resolve) => {
    socket.on('connect', () => resolve());
    socket.on('error', (error) => {
      client.error = error;
      resolve();
    });
    socket.on('close', () => {
      ended.resolve();
      gone.resolve();
      resolve();
    });
  });
  socket.on('data', (data: Buffer) => {
    client.text += data.toString('latin1');
    if (client.text.includes('\r\n\r\n')) answered.resolve();
  });
  socket.on('end', () => ended.resolve());
  if (first !== undefined && !socket.destroyed) socket.write(first);
  return client;
}

/** Sends it and says no more; gives back what was answered until the other side ended, or until it holds `enough`. */
export async function say(port: number, bytes: string | Uint8Array, enough?: string): Promise<string> {
  const client = await dial(port, bytes);
  const heard = Promise.withResolvers<void>();
  client.socket.on('data', () => {
    if (enough !== undefined && client.text.includes(enough)) heard.resolve();
  });
  await Promise.race([client.ended, heard.promise]);
  client.socket.destroy();
  return client.text;
}

export type UpgradeHeaders = Readonly<Record<string, string>>;

/** A WebSocket handshake as text; a header that is empty is left out. */
export function handshake(target: string, headers: UpgradeHeaders = {}): string {
  const all: Record<string, string> = {
    host: '127.0.0.1',
    connection: 'Upgrade',
    upgrade: 'websocket',
    'sec-websocket-version': '13',
    'sec-websocket-key': 'AAAAAAAAAAAAAAAAAAAAAA==',
    ...headers,
  };
  const lines = Object.entries(all).flatMap(([name, value]) => (value === '' ? [] : [`${name}: ${value}`]));
  return `GET ${target} HTTP/1.1\r\n${lines.join('\r\n')}\r\n\r\n`;
}

/** Descriptors of a process that are sockets. */
export function socketsOf(pid: number | 'self' = 'self'): number {
  let sockets = 0;
  for (const name of readdirSync(`/proc/${pid}/fd`))
    try {
      if (readlinkSync(`/proc/${pid}/fd/${name}`).startsWith('socket:')) sockets++;
    } catch {
      // Closed while it was looked at.
    }
  return sockets;
}
