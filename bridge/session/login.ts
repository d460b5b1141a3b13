/**
 * The login of a session (docs/protocol/stratum.md, S20 to S25, S55 and S59): subscribe or resume, authorize, and the
 * wait until the sink has registered the miner. Then the session mines.
 */
import { type Bytes, equalBytes } from '../../protocol/bytes.ts';
import { ProtocolError } from '../../protocol/errors.ts';
import { answerTo, CODE, type RefusalCode } from '../../protocol/stratum/errors.ts';
import type { Authorize, Subscribe } from '../../protocol/stratum/messages.ts';
import { parsePassword, parseUsername, type Wishes } from '../../protocol/stratum/username.ts';
import { type StratumService, tagOf } from '../service.ts';
import type { Member } from '../threads/hub.ts';
import { drawOf, isNamedBy } from './extranonce.ts';
import type { JobsOwner } from './jobs.ts';
import type { SessionRecord } from './session-record.ts';
import type { ConnectionNumbers, SessionDesk, SessionHost } from './surroundings.ts';
import type { AnswerId } from './voice.ts';

export type LoginState = 'connected' | 'subscribed' | 'authorized' | 'finished';

export interface Refuser {
  /** Counts against the session where the code is that of a fault. */
  refuse(id: AnswerId, code: RefusalCode, message?: string): void;
  /** Counts against nobody. */
  decline(id: AnswerId, code: RefusalCode, message: string): void;
}

/** Shared by all sessions that no restart was in, which are most. */
const NOBODY: readonly Member[] = [];

export type LoginHost = Pick<SessionHost, 'subscribed' | 'authorized' | 'resume' | 'own'>;

export class Login implements JobsOwner {
  state: LoginState = 'connected';
  /** The session's id. */
  id = '';
  tag = '';
  member: Member | null = null;
  wishes: Wishes | null = null;
  /** The record of an earlier connection, if this one resumes it; kept until it mines. */
  record: SessionRecord | null = null;
  /** Whether its earlier jobs stay valid: the session was resumed in the process that served it, or in the next one of its data directory. */
  isResumed = false;
  /** A request waits for the main thread: those after it must wait too, or answers would overtake each other. */
  busy = false;
  readonly #service: StratumService;
  readonly #desk: SessionDesk;
  readonly #host: LoginHost;
  readonly #session: Refuser;
  #numbers: ConnectionNumbers | null = null;
  #agent = '';
  #earlier: readonly Member[] = NOBODY;
  /** The request that `busy` is about. */
  #open: AnswerId = null;
  /** As the miner sent it, until it is answered. */
  #address = '';
  #wasPutOff = false;

  constructor(service: StratumService, desk: SessionDesk, host: LoginHost, session: Refuser) {
    this.#service = service;
    this.#desk = desk;
    this.#host = host;
    this.#session = session;
  }

  /** The miner waits for the server, or was asked to retry: it is not its fault that it has not logged in. */
  get isPutOff(): boolean {
    return this.busy || this.#wasPutOff;
  }

  /** The server deferred the last login request: a refusal caused by that is not the miner's fault. */
  get wasPutOff(): boolean {
    return this.#wasPutOff;
  }

  get owner(): Bytes {
    return (this.#numbers as ConnectionNumbers).owner;
  }

  get prefix(): number {
    return (this.#numbers as ConnectionNumbers).prefix;
  }

  /** Whom its blocks pay. */
  get payout(): Bytes {
    return this.#service.pool?.payout ?? (this.member as Member).account;
  }

  /** Decides which of the draws of a cut it mines on. */
  get draw(): number {
    return drawOf(this.owner);
  }

  /** All that it was announced as. */
  get members(): readonly Member[] {
    return [...(this.member === null ? [] : [this.member]), ...this.#earlier];
  }

  /** As whom it finds something on the bodies of a name that it had before a restart. */
  memberOf(owner: Bytes): Member {
    const known = this.#earlier.find((each) => equalBytes(each.owner, owner));
    if (known !== undefined) return known;
    const { handle } = this.#desk.newNumbers(this.#service.mark);
    const member = { ...(this.member as Member), owner, handle };
    this.#earlier = [...this.#earlier, member];
    return member;
  }

  subscribe(id: AnswerId, asked: Subscribe): void {
    if (this.state !== 'connected') {
      this.#session.refuse(id, CODE.invalid_request, 'subscribed already');
      return;
    }
    if (!this.#desk.ready) {
      this.#putOff(id, CODE.not_ready);
      return;
    }
    this.#agent = asked.agent;
    this.tag = tagOf(this.#service, asked.tag);
    if (asked.session === null) {
      this.#begin(id);
      return;
    }
    this.busy = true;
    this.#open = id;
    this.#host.resume(asked.session);
  }

  /** The session asked for, or null when it is unknown or too old. */
  resumed(record: SessionRecord | null): void {
    this.busy = false;
    if (record === null || record.service !== this.#service.name) {
      this.#begin(this.#open);
      return;
    }
    const { bootId } = this.#desk;
    const numbers = this.#desk.newNumbers(this.#service.mark);
    // From another instance: its jobs are not known here, and neither is what was judged on them. The same where the
    // blocks of this service now pay another address.
    const payout = this.#service.pool?.payout ?? record.account;
    const isKnown = equalBytes(record.bootId, bootId) && record.jobs !== null && equalBytes(record.jobs.payout, payout);
    this.record = isKnown ? record : { ...record, jobs: null };
    this.isResumed = isKnown;
    this.id = record.id;
    this.tag = record.tag;
    // A name that this process did not give is not used for further jobs: the headers stay distinct if several
    // connections present the same record, and the jobs say which process sent them (S35).
    const owner = isKnown && isNamedBy(bootId, record.owner) ? record.owner : numbers.owner;
    this.#numbers = { ...numbers, prefix: record.prefix, owner };
    this.#become(record.account, record.worker);
    this.#subscribed(this.#open);
  }

  authorize(id: AnswerId, asked: Authorize): void {
    if (this.state === 'connected') {
      this.#session.refuse(id, CODE.not_subscribed);
      return;
    }
    let address: string;
    let account: Bytes;
    let worker: string;
    let wishes: Wishes;
    try {
      const username = parseUsername(asked.username, this.#desk.network.name, this.#desk.readAddress);
      address = username.text;
      account = username.address.payload;
      worker = username.worker;
      wishes = parsePassword(asked.password);
      // The port decides, and not the miner: who rents hash rate gave that number.
      wishes.fixedWork = this.#service.fixedWork ?? wishes.fixedWork;
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error;
      this.#session.decline(id, answerTo(error), error.message);
      return;
    }
    if (this.member !== null && (!equalBytes(this.member.account, account) || this.member.worker !== worker)) {
      this.#session.decline(id, CODE.invalid_request, 'another username was authorized already');
      return;
    }
    if (this.state !== 'subscribed') {
      this.#host.authorized(id, { address, worker });
      return;
    }
    if (!this.#desk.ready) {
      this.#putOff(id, CODE.not_ready);
      return;
    }
    this.#wasPutOff = false;
    this.wishes = Object.values(wishes).every((wish) => wish === null) ? null : wishes;
    this.state = 'authorized';
    this.#open = id;
    this.#address = address;
    if (this.isResumed) return;
    this.#become(account, worker);
    if (!this.#desk.asksSink) return;
    this.busy = true;
    this.#host.own();
  }

  /** The sink keeps what the miner finds. Returns whether it may mine from now on. */
  owned(): boolean {
    this.busy = false;
    if (this.state !== 'authorized') return false;
    this.state = 'finished';
    return true;
  }

  /** An address has one spelling (protocol/address.ts), so the answer repeats the miner's text. */
  answerAuthorize(): void {
    this.#host.authorized(this.#open, { address: this.#address, worker: (this.member as Member).worker });
    this.#address = '';
  }

  /** The sink could not register the miner now; this is not the miner's fault. */
  notOwned(): void {
    this.busy = false;
    if (this.state !== 'authorized') return;
    this.state = 'subscribed';
    this.member = null;
    this.#putOff(this.#open, CODE.internal);
  }

  #begin(id: AnswerId): void {
    this.id = this.#desk.newSessionId();
    this.#numbers = this.#desk.newNumbers(this.#service.mark);
    this.#subscribed(id);
  }

  #subscribed(id: AnswerId): void {
    this.state = 'subscribed';
    this.#wasPutOff = false;
    const { pool } = this.#service;
    this.#host.subscribed(id, {
      session: this.id,
      noncePrefix: Uint8Array.of(this.prefix >> 8, this.prefix & 0xff),
      network: this.#desk.network.id,
      server: this.#desk.server,
      pool: pool === null ? null : { address: pool.address, name: pool.name },
    });
  }

  #become(account: Bytes, worker: string): void {
    const { handle, owner } = this.#numbers as ConnectionNumbers;
    const service = this.#service.name;
    this.member = { handle, owner, service, account, worker, tag: this.tag, agent: this.#agent };
  }

  /** The server is not ready, or the sink could not register the miner. */
  #putOff(id: AnswerId, code: (typeof CODE)['internal' | 'not_ready']): void {
    this.#wasPutOff = true;
    this.#session.refuse(id, code);
  }
}
