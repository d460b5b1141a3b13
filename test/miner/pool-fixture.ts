/**
 * A small stratum server for the miner's tests: real sockets (pool-fixture-doors.ts), both wire forms through the protocol's own
 * codecs, every share judged by the PoW reference. What it does wrong is switched on by the test.
 */
import { randomBytes } from 'node:crypto';
import { formatAddress, parseAddress } from '../../protocol/address.ts';
import { type Bytes, concat, equalBytes, toHex, utf8 } from '../../protocol/bytes.ts';
import { encodeHeader, NONCE_OFFSET } from '../../protocol/ledger/header.ts';
import { rewardRoot } from '../../protocol/ledger/reward.ts';
import { encodeExtranonce } from '../../protocol/ledger/tag.ts';
import { meetsTarget, targetOfWork, targetToBytes, workOfTarget } from '../../protocol/ledger/target.ts';
import { NETWORKS } from '../../protocol/network.ts';
import { errorReply, type StratumCode } from '../../protocol/stratum/errors.ts';
import type { Authorize, Job, Reconnect, Submit, Subscribe } from '../../protocol/stratum/messages.ts';
import { parseUsername } from '../../protocol/stratum/username.ts';
import { encodeError, encodeNotification, encodeResult } from '../../protocol/stratum/v1-answer.ts';
import { decodeRequest, type RequestId } from '../../protocol/stratum/v1-request.ts';
import { decodeClientFrame, encodeServerFrame, type ServerFrame } from '../../protocol/stratum/v2.ts';
import { referenceHash } from '../pow-hash.ts';
import { FixtureDoors, type FixtureWire } from './pool-fixture-doors.ts';

const NETWORK = NETWORKS.development;

const payload = (fill: number): Uint8Array<ArrayBuffer> => {
  const bytes = new Uint8Array(49).fill(fill);
  bytes[0] = 0;
  return bytes;
};

/** Addresses of the development network that nobody has the key of. */
export const MINER_ADDRESS = formatAddress(payload(1), 'development');
export const POOL_ADDRESS = formatAddress(payload(2), 'development');
export const THIEF_ADDRESS = formatAddress(payload(3), 'development');

export type FixtureOptions = {
  /** Undefined: a bridge, which pays each miner. */
  pool?: { address: string; name: string };
  /** Whom the jobs really pay, where that is not the one it should be. */
  payTo?: string;
  shareWork?: bigint;
  blockWork?: bigint;
  prefixBytes?: 1 | 2;
  network?: number;
  anchorHeight?: number;
  epoch?: number;
  /** Answers to subscribe and authorize instead of a welcome. */
  refuseSubscribe?: StratumCode;
  refuseAuthorize?: StratumCode;
  /** Verdict on every share, instead of judging it. */
  refuseShares?: StratumCode;
  /** Accepts every share without hashing. */
  takeShares?: boolean;
  /** Takes connections and says nothing. */
  silent?: boolean;
  /** Says nothing more after the login: no pong either. */
  silentAfterLogin?: boolean;
  ignorePings?: boolean;
  keepSessions?: boolean;
  /** What is sent in place of the first job. */
  instead?: (client: FixtureClient) => void;
  /** Port 0 by default. */
  port?: number;
};

type Session = {
  id: string;
  prefix: Uint8Array<ArrayBuffer>;
  jobs: Map<number, Job>;
  judged: Set<string>;
  work: bigint;
};

export interface FixtureClient extends FixtureWire {
  readonly version: 1 | 2;
  readonly encrypted: boolean;
  subscribe: Subscribe | undefined;
  username: string | undefined;
  session: Session | undefined;
  /** Bytes that were sent. */
  sent: number;
}

export type Judged = { readonly client: FixtureClient; readonly submit: Submit; readonly code: StratumCode | 0 };

export class PoolFixture {
  readonly options: FixtureOptions;
  readonly clients = new Set<FixtureClient>();
  readonly judged: Judged[] = [];
  /** Shares that were read and get no answer (v1). */
  unanswered = 0;
  readonly subscribes: Subscribe[] = [];
  readonly #sessions = new Map<string, Session>();
  #doors: FixtureDoors | undefined;
  #prefix = 0x1200;
  #nextJob = 1;
  #height: number;
  port = 0;
  webSocketPort = 0;
  secureWebSocketPort = 0;
  connections = 0;
  /** Bytes that went to one connection, at most. */
  mostSent = 0;

  constructor(options: FixtureOptions = {}) {
    this.options = options;
    this.#height = options.anchorHeight ?? 100;
    this.port = options.port ?? 0;
  }

  get url(): string {
    return `stratum+tcp://127.0.0.1:${this.port}`;
  }

  get accepted(): number {
    return this.judged.filter(({ code }) => code === 0).length;
  }

  async listen(): Promise<this> {
    const doors = new FixtureDoors({
      onConnection: (version, encrypted, wire) => {
        const client = this.#client(version, encrypted, wire);
        return {
          onLine: (line) => this.#onLine(client, line),
          onFrame: (type, body) => this.#onFrame(client, type, body),
          onClose: () => this.clients.delete(client),
        };
      },
      onSocket: () => this.connections++,
    });
    this.#doors = doors;
    const { port, webSocketPort, secureWebSocketPort } = this;
    Object.assign(this, await doors.listen({ port, webSocketPort, secureWebSocketPort }));
    return this;
  }

  /** Ends all connections and the listeners; listen() opens them again on the same ports. */
  async close(): Promise<void> {
    const closed = this.#doors?.close();
    this.dropAll();
    this.#doors?.destroy();
    await closed;
    this.#doors = undefined;
    if (!this.options.keepSessions) this.#sessions.clear();
  }

  dropAll(): void {
    for (const client of this.clients) client.drop();
    this.clients.clear();
  }

  /** A new job to everybody. */
  notify(clean = false, anchorHeight = this.#height + 1): void {
    this.#height = anchorHeight;
    for (const client of this.clients) if (client.username !== undefined) this.sendJob(client, clean);
  }

  reconnect(wish: Reconnect): void {
    for (const client of this.clients)
      client.send(
        client.version === 1
          ? `${encodeNotification({ method: 'mining.reconnect', params: wish })}\n`
          : encodeServerFrame({ type: 'reconnect', reconnect: wish }),
      );
  }

  #client(version: 1 | 2, encrypted: boolean, wire: FixtureWire): FixtureClient {
    const client: FixtureClient = {
      version,
      encrypted,
      subscribe: undefined,
      username: undefined,
      session: undefined,
      sent: 0,
      ...wire,
      send: (data) => {
        client.sent += data.length;
        this.mostSent = Math.max(this.mostSent, client.sent);
        wire.send(data);
      },
    };
    this.clients.add(client);
    return client;
  }

  #onLine(client: FixtureClient, line: Bytes): void {
    const request = decodeRequest(line);
    const { silent, silentAfterLogin } = this.options;
    if (silent || (silentAfterLogin && client.username !== undefined)) {
      if ('method' in request && request.method === 'mining.submit') this.unanswered++;
      return;
    }
    if (request.kind === 'invalid') {
      client.send(`${encodeError(request.id, errorReply(request.code as Exclude<StratumCode, 28>, request.reason))}\n`);
      return;
    }
    const fail = (code: StratumCode): void => client.send(`${encodeError(request.id, replyOf(code))}\n`);
    switch (request.method) {
      case 'mining.subscribe': {
        const refused = this.options.refuseSubscribe;
        if (refused !== undefined) {
          fail(refused);
          return;
        }
        this.#subscribe(client, request.params);
        const result = this.#subscribed(client);
        client.send(`${encodeResult(request.id, { method: 'mining.subscribe', result })}\n`);
        return;
      }
      case 'mining.authorize': {
        const refused = this.options.refuseAuthorize;
        if (refused !== undefined) {
          fail(refused);
          return;
        }
        const result = this.#authorize(client, request.params);
        client.send(`${encodeResult(request.id, { method: 'mining.authorize', result })}\n`);
        this.#firstJob(client);
        return;
      }
      case 'mining.submit':
        this.#submitV1(client, request.id, request.params);
        return;
      case 'mining.ping':
        if (!this.options.ignorePings) client.send(`${encodeResult(request.id, { method: 'mining.ping' })}\n`);
        return;
      case 'mining.stats':
        fail(-32601);
        return;
    }
  }

  #submitV1(client: FixtureClient, id: RequestId, submit: Submit): void {
    const { code, job, blockId } = this.#judge(client, submit);
    if (code !== 0) client.send(`${encodeError(id, replyOf(code))}\n`);
    else {
      const work = workOfTarget((job as Job).shareTarget);
      client.send(`${encodeResult(id, { method: 'mining.submit', result: { work, blockId } })}\n`);
    }
  }

  #onFrame(client: FixtureClient, type: number, body: Bytes): void {
    const frame = decodeClientFrame({ type, payload: body });
    const { silent, silentAfterLogin } = this.options;
    if (silent || (silentAfterLogin && client.username !== undefined)) return;
    const send = (one: ServerFrame): void => client.send(encodeServerFrame(one));
    switch (frame.type) {
      case 'subscribe': {
        const refused = this.options.refuseSubscribe;
        if (refused !== undefined) {
          send({ type: 'error', error: replyOf(refused) });
          return;
        }
        this.#subscribe(client, frame.subscribe);
        send({ type: 'subscribed', subscribed: this.#subscribed(client) });
        return;
      }
      case 'authorize': {
        const refused = this.options.refuseAuthorize;
        if (refused !== undefined) {
          send({ type: 'error', error: replyOf(refused) });
          return;
        }
        send({ type: 'authorized', authorized: this.#authorize(client, frame.authorize) });
        this.#firstJob(client);
        return;
      }
      case 'submit': {
        const { code, job, blockId } = this.#judge(client, frame.submit);
        const session = client.session as Session;
        if (code !== 0) send({ type: 'rejected', sequence: frame.sequence, code });
        else session.work += workOfTarget((job as Job).shareTarget);
        if (blockId !== null) send({ type: 'block', sequence: frame.sequence, blockId });
        send({ type: 'accepted', through: frame.sequence, count: 1, work: session.work });
        return;
      }
      case 'ping':
        if (!this.options.ignorePings) send({ type: 'pong', value: frame.value });
        return;
      case 'pong':
        return;
    }
  }

  #subscribe(client: FixtureClient, subscribe: Subscribe): void {
    client.subscribe = subscribe;
    this.subscribes.push(subscribe);
    const old = subscribe.session === null ? undefined : this.#sessions.get(subscribe.session);
    const number = this.#prefix++;
    const prefix = Uint8Array.of(number & 0xff, number >> 8).slice(0, this.options.prefixBytes ?? 2);
    client.session = old ?? { id: toHex(randomBytes(16)), prefix, jobs: new Map(), judged: new Set(), work: 0n };
    this.#sessions.set(client.session.id, client.session);
  }

  #subscribed(client: FixtureClient) {
    const { id, prefix } = client.session as Session;
    const network = this.options.network ?? NETWORK.id;
    return { session: id, noncePrefix: prefix, network, server: 'fixture/1', pool: this.options.pool ?? null };
  }

  #authorize(client: FixtureClient, { username }: Authorize) {
    client.username = username;
    const { text, worker } = parseUsername(username, 'development');
    return { address: text, worker };
  }

  #firstJob(client: FixtureClient): void {
    if (this.options.instead !== undefined) this.options.instead(client);
    else this.sendJob(client);
  }

  makeJob(client: FixtureClient): Job {
    const { options } = this;
    const paid = options.payTo ?? options.pool?.address ?? parseUsername(client.username ?? '', 'development').text;
    const payout = parseAddress(paid).payload;
    const extranonce = encodeExtranonce(client.subscribe?.tag ?? '', randomBytes(8));
    const target = targetOfWork(options.blockWork ?? 1_000_000n);
    const header = encodeHeader({
      networkId: NETWORK.id,
      anchorHeight: this.#height,
      timestampMillis: 1_800_000_000_000 + this.#nextJob,
      anchorId: randomBytes(48),
      parentsRoot: randomBytes(48),
      transactionsRoot: randomBytes(48),
      rewardRoot: rewardRoot(payout, extranonce),
      stateRoot: randomBytes(48),
      target,
      nonce: new Uint8Array(8),
    });
    const shareTarget = targetOfWork(options.shareWork ?? 200n);
    return { jobId: this.#nextJob++, header, shareTarget, epoch: options.epoch ?? 0, payout, extranonce, clean: false };
  }

  sendJob(client: FixtureClient, clean = false): void {
    const job = { ...this.makeJob(client), clean };
    client.session?.jobs.set(job.jobId, job);
    this.sendAsIs(client, job);
  }

  /** A job that is judged like one of its own. */
  know(client: FixtureClient, job: Job): void {
    client.session?.jobs.set(job.jobId, job);
    this.sendAsIs(client, job);
  }

  sendAsIs(client: FixtureClient, job: Job): void {
    client.send(
      client.version === 1
        ? `${encodeNotification({ method: 'mining.notify', params: job })}\n`
        : encodeServerFrame({ type: 'job', job }),
    );
  }

  /** A line of text to everybody who speaks v1. */
  say(text: string): void {
    for (const client of this.clients) client.send(utf8(text));
  }

  #judge(
    client: FixtureClient,
    submit: Submit,
  ): { code: StratumCode | 0; job: Job | undefined; blockId: Uint8Array<ArrayBuffer> | null } {
    const session = client.session as Session;
    const job = session.jobs.get(submit.jobId);
    const found = this.#verdict(session, job, submit);
    this.judged.push({ client, submit, code: found });
    return { code: found, job, blockId: null };
  }

  #verdict(session: Session, job: Job | undefined, { jobId, nonce }: Submit): StratumCode | 0 {
    if (this.options.refuseShares !== undefined) return this.options.refuseShares;
    if (job === undefined) return 21;
    if (!equalBytes(nonce.subarray(8 - session.prefix.length), session.prefix)) return 26;
    const key = `${jobId}/${toHex(nonce)}`;
    if (session.judged.has(key)) return 22;
    session.judged.add(key);
    if (this.options.takeShares) return 0;
    const hash = referenceHash(job.epoch, concat(job.header.subarray(0, NONCE_OFFSET), nonce));
    return meetsTarget(hash, targetToBytes(job.shareTarget)) ? 0 : 23;
  }
}

const replyOf = (code: StratumCode) =>
  code === 28 ? { code, message: 'banned', retryAfterMillis: 60_000 } : errorReply(code);
