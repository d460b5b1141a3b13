/** A client for tests of the server: one request at a time, both wire forms, over TCP, TLS or WebSocket. */
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { WebSocket } from 'ws';
import { formatAddress } from '../../protocol/address.ts';
import type { Bytes } from '../../protocol/bytes.ts';
import { meetsTarget, targetToBytes } from '../../protocol/ledger/target.ts';
import type { FarmJob, FarmSubmit } from '../../protocol/stratum/farm.ts';
import { FrameSplitter } from '../../protocol/stratum/frame.ts';
import { LineSplitter } from '../../protocol/stratum/line.ts';
import type { Job, Subscribed } from '../../protocol/stratum/messages.ts';
import { composeNonce } from '../../protocol/stratum/nonce.ts';
import { decodeServerMessage, type ServerMessage } from '../../protocol/stratum/v1-answer.ts';
import { type Call, encodeRequest, type Method, type RequestId } from '../../protocol/stratum/v1-request.ts';
import { type ClientFrame, decodeServerFrame, encodeClientFrame, type ServerFrame } from '../../protocol/stratum/v2.ts';
import { powHash } from '../pow-hash.ts';
import { watch } from '../watch/watch.ts';

export const accountOf = (number: number): Uint8Array<ArrayBuffer> => {
  const payload = new Uint8Array(49).fill(7);
  payload[0] = 0;
  new DataView(payload.buffer).setUint32(1, number, true);
  return payload;
};
export const addressOf = (number: number): string => formatAddress(accountOf(number), 'development');

/** `from`: the address that a PROXY header names; where it is not told, 203.0.113.5. */
export type Transport = 'tcp' | 'tls' | 'ws' | 'proxied' | { readonly from: string };

/** Bytes in and out, whatever carries them; `messages` are whole on a WebSocket. */
interface Line {
  readonly closed: Promise<void>;
  readonly isFramed: boolean;
  send(data: Bytes | string): void;
  onData(take: (data: Bytes) => void): void;
  close(): void;
}

async function openLine(transport: Transport, port: number, protocol: string, headers = {}): Promise<Line> {
  if (transport === 'ws') {
    const socket = new WebSocket(`ws://127.0.0.1:${port}`, [protocol], { headers });
    const closed = new Promise<void>((resolve) => socket.on('close', () => resolve()));
    await once(socket, 'open');
    return {
      closed,
      isFramed: true,
      send: (data) => socket.send(data),
      onData: (take) => void socket.on('message', (data) => take(data as Buffer)),
      close: () => socket.terminate(),
    };
  }
  const socket: Socket =
    transport === 'tls'
      ? connectTls({ port, host: '127.0.0.1', rejectUnauthorized: false })
      : connect(port, '127.0.0.1');
  socket.on('error', () => {});
  const closed = new Promise<void>((resolve) => socket.on('close', () => resolve()));
  await once(socket, transport === 'tls' ? 'secureConnect' : 'connect');
  // This machine itself is never banned.
  const { from } = typeof transport === 'object' ? transport : { from: '203.0.113.5' };
  if (transport === 'proxied' || typeof transport === 'object') socket.write(`PROXY TCP4 ${from} 127.0.0.1 1 2\r\n`);
  return {
    closed,
    isFramed: false,
    send: (data) => void socket.write(data),
    onData: (take) => void socket.on('data', take),
    close: () => socket.destroy(),
  };
}

export class V1Client {
  readonly #line: Line;
  readonly jobs: Job[] = [];
  readonly received: ServerMessage[] = [];
  readonly #methods = new Map<RequestId, Method>();
  readonly #waiting = new Map<RequestId, (message: ServerMessage) => void>();
  #watchers: (() => void)[] = [];
  #next = 1;
  prefix: Bytes = new Uint8Array(2);
  session = '';

  constructor(line: Line) {
    this.#line = line;
    const splitter = new LineSplitter();
    const take = (text: Bytes): boolean => {
      this.#take(decodeServerMessage(text, (id) => this.#methods.get(id)));
      return true;
    };
    line.onData((data) => (line.isFramed ? take(data) : splitter.push(data, take)));
  }

  static async open(port: number, transport: Transport = 'tcp'): Promise<V1Client> {
    return new V1Client(await openLine(transport, port, 'svc-mining-v1'));
  }

  get closed(): Promise<void> {
    return this.#line.closed;
  }

  #take(message: ServerMessage): void {
    this.received.push(message);
    if (message.kind === 'notification') {
      if (message.method === 'mining.notify') this.jobs.push(message.params);
    } else if (message.id !== null) this.#waiting.get(message.id)?.(message);
    const watchers = this.#watchers;
    this.#watchers = [];
    for (const wake of watchers) wake();
  }

  raw(data: Bytes | string): void {
    this.#line.send(data);
  }

  send(call: Call): RequestId {
    const id = this.#next++;
    this.#methods.set(id, call.method);
    const text = encodeRequest(id, call);
    this.#line.send(this.#line.isFramed ? text : `${text}\n`);
    return id;
  }

  ask(call: Call): Promise<ServerMessage> {
    return new Promise((resolve) => {
      const id = this.#next;
      this.#waiting.set(id, resolve);
      this.send(call);
    });
  }

  until<T>(look: () => T | undefined): Promise<T> {
    return watch.waitFor(`a client of the door sees ${look}`, this.#sees(look));
  }

  async #sees<T>(look: () => T | undefined): Promise<T> {
    for (;;) {
      const found = look();
      if (found !== undefined) return found;
      await new Promise<void>((resolve) => this.#watchers.push(resolve));
    }
  }

  async subscribe(session: string | null = null, tag = ''): Promise<void> {
    const answer = await this.ask({ method: 'mining.subscribe', params: { agent: 'test/1', tag, session } });
    if (answer.kind !== 'result' || answer.method !== 'mining.subscribe') throw new Error(JSON.stringify(answer));
    this.prefix = answer.result.noncePrefix;
    this.session = answer.result.session;
  }

  async login(username: string, password = '', session: string | null = null): Promise<void> {
    await this.subscribe(session);
    const answer = await this.ask({ method: 'mining.authorize', params: { username, password } });
    if (answer.kind !== 'result') throw new Error(JSON.stringify(answer));
    await this.until(() => this.jobs.at(-1));
  }

  submit(jobId: number, nonce: Bytes): Promise<ServerMessage> {
    return this.ask({ method: 'mining.submit', params: { jobId, nonce } });
  }

  /** The code of an answer, 0 for a result. */
  async submitCode(jobId: number, nonce: Bytes): Promise<number> {
    const answer = await this.submit(jobId, nonce);
    return answer.kind === 'error' ? answer.error.code : 0;
  }

  close(): void {
    this.#line.close();
  }
}

export class V2Client {
  readonly #line: Line;
  readonly frames: ServerFrame[] = [];
  readonly jobs: Job[] = [];
  readonly farmJobs: FarmJob[] = [];
  #watchers: (() => void)[] = [];
  #sequence = 0;
  prefix: Bytes = new Uint8Array(2);
  session = '';
  /** The pool that the server named. */
  pool: Subscribed['pool'] = null;

  constructor(line: Line) {
    this.#line = line;
    const splitter = new FrameSplitter();
    const take = (type: number, payload: Bytes): boolean => {
      const frame = decodeServerFrame({ type, payload: payload.slice() });
      this.frames.push(frame);
      if (frame.type === 'job') this.jobs.push(frame.job);
      if (frame.type === 'farmJob') this.farmJobs.push(frame.job);
      const watchers = this.#watchers;
      this.#watchers = [];
      for (const wake of watchers) wake();
      return true;
    };
    line.onData((data) => splitter.push(data, take));
    if (!line.isFramed) line.send('SVC2');
  }

  static async open(port: number, transport: Transport = 'tcp'): Promise<V2Client> {
    return new V2Client(await openLine(transport, port, 'svc-mining-v2'));
  }

  get closed(): Promise<void> {
    return this.#line.closed;
  }

  send(frame: ClientFrame): void {
    this.#line.send(encodeClientFrame(frame));
  }

  async next<T extends ServerFrame['type']>(type: T, from = 0): Promise<Extract<ServerFrame, { type: T }>> {
    for (;;) {
      const found = this.frames.slice(from).find((frame) => frame.type === type);
      if (found !== undefined) return found as Extract<ServerFrame, { type: T }>;
      await new Promise<void>((resolve) => this.#watchers.push(resolve));
    }
  }

  async login(username: string, password = '', session: string | null = null): Promise<Job> {
    this.send({ type: 'subscribe', subscribe: { agent: 'test/2', tag: '', session } });
    const { subscribed } = await this.#granted('subscribed');
    this.prefix = subscribed.noncePrefix;
    this.session = subscribed.session;
    this.pool = subscribed.pool;
    this.send({ type: 'authorize', authorize: { username, password } });
    return (await this.#granted('job')).job;
  }

  /** What a login asks for; a server that is not ready says so, and closes much later. */
  async #granted<T extends 'subscribed' | 'job'>(type: T): Promise<Extract<ServerFrame, { type: T }>> {
    for (;;) {
      const found = this.frames.find((frame) => frame.type === type);
      if (found !== undefined) return found as Extract<ServerFrame, { type: T }>;
      const refused = this.frames.find((frame) => frame.type === 'error');
      if (refused !== undefined) throw new Error(JSON.stringify(refused.error));
      await new Promise<void>((resolve) => this.#watchers.push(resolve));
    }
  }

  submit(jobId: number, nonce: Bytes): number {
    this.#sequence++;
    this.send({ type: 'submit', sequence: this.#sequence, submit: { jobId, nonce } });
    return this.#sequence;
  }

  /** After the login: the session becomes a farm's, with rigs named `w0` and on. */
  async farm(rigs: number): Promise<FarmJob> {
    this.send({ type: 'farm', rigs });
    for (let index = 0; index < rigs; index++) this.send({ type: 'rig', rig: { index, worker: `w${index}` } });
    return (await this.next('farmJob')).job;
  }

  farmSubmit(submit: FarmSubmit): number {
    this.#sequence++;
    this.send({ type: 'farmSubmit', sequence: this.#sequence, submit });
    return this.#sequence;
  }

  /** The code of the answer to a submit, 0 when it was accepted. */
  submitCode(jobId: number, nonce: Bytes): Promise<number> {
    const from = this.frames.length;
    return this.codeOf(this.submit(jobId, nonce), from);
  }

  /** The same for a submit that was sent after `from` frames. */
  async codeOf(sequence: number, from = 0): Promise<number> {
    for (;;) {
      for (const frame of this.frames.slice(from)) {
        if (frame.type === 'accepted' && frame.through >= sequence) return 0;
        if (frame.type === 'rejected' && frame.sequence === sequence) return frame.code;
      }
      await new Promise<void>((resolve) => this.#watchers.push(resolve));
    }
  }

  close(): void {
    this.#line.close();
  }
}

/** Searches until a nonce meets the target and misses `blockTarget`, where that is given; `from` so that no nonce is found twice. */
export function mine(
  job: Job,
  prefix: Bytes,
  from = 0n,
  target = targetToBytes(job.shareTarget),
  blockTarget?: Bytes,
): { nonce: Bytes; next: bigint } {
  const header = Uint8Array.from(job.header);
  for (let counter = from; ; counter++) {
    const nonce = composeNonce(counter, prefix);
    header.set(nonce, 304);
    const hash = powHash(job.epoch, header);
    if (meetsTarget(hash, target) && !(blockTarget && meetsTarget(hash, blockTarget)))
      return { nonce, next: counter + 1n };
  }
}
