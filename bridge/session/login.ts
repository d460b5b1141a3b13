/**
 * The login of a session (docs/protocol/stratum.md, S20 to S25, S55 and S59): subscribe or resume, authorize, and the
 * wait until the sink has registered the miner. Then the session mines.
 */
import { type Bytes, equalBytes } from '../../protocol/bytes.ts';
import { ProtocolError } from '../../protocol/errors.ts';
import { answerTo, CODE, type RefusalCode } from '../../protocol/stratum/errors.ts';
import { LAST_FIRST_GENERATION } from '../../protocol/stratum/farm.ts';
import { type Authorize, checkWorker, type Subscribe } from '../../protocol/stratum/messages.ts';
import { parsePassword, parseUsername, type Wishes } from '../../protocol/stratum/username.ts';
import { type StratumService, tagOf } from '../service.ts';
import type { Member } from '../threads/hub.ts';
import { isNamedBy } from './extranonce.ts';
import { lastGeneration } from './job-log.ts';
import type { SessionRecord } from './session-record.ts';
import type { ConnectionNumbers, SessionDesk, SessionHost } from './surroundings.ts';
import type { AnswerId } from './voice.ts';

const NOTHING = new Uint8Array(0);
/** Of whatever network. */
const ANY_ADDRESS = /^[a-z]?svc1[0-9a-z]{20}/;

export interface Refuser {
  /** Refuses a request other than a submit. Counts against the session where the code is that of a fault. */
  refuse(id: AnswerId, code: RefusalCode, message?: string): void;
  /** Refuses a login that can be read: a typing error is the miner's, but nothing to be banned for. */
  decline(id: AnswerId, code: RefusalCode, message: string): void;
}

export type LoginHost = Pick<SessionHost, 'subscribed' | 'authorized' | 'resume' | 'own'>;

/** Who mines from now on. */
export type LoggedIn = {
  readonly id: string;
  readonly prefix: number;
  readonly member: Member;
  readonly wishes: Wishes | null;
  /** The record of an earlier connection, if this one resumes it. */
  readonly record: SessionRecord | null;
  /** Whether its earlier jobs stay valid: the session was resumed in the process that served it, or in the next one of its data directory. */
  readonly isResumed: boolean;
};

/** Two generations must be left: one for the plain job after the login, and one for the first farm job. */
const isUsedUp = ({ jobs }: SessionRecord): boolean =>
  jobs?.log.terms.some((terms) => lastGeneration(terms) >= LAST_FIRST_GENERATION - 1) ?? false;

/** What a connection's nonces end with. */
export const noncePrefixOf = (prefix: number, nonceEnd: Bytes = NOTHING): Bytes =>
  Uint8Array.of(prefix >> 8, prefix & 0xff, ...nonceEnd);

/** The name of a rig where all work for one address, alone or behind that address. */
function rigOf(username: string, address: string): string {
  if (username === address) return '';
  if (username.startsWith(`${address}.`)) return checkWorker(username.slice(address.length + 1));
  if (ANY_ADDRESS.test(username))
    throw new ProtocolError(
      'address_text',
      `everyone here works for ${address}: log in with that address, or with the name of the rig alone`,
    );
  return checkWorker(username);
}

export class Login {
  #state: 'begun' | 'authorized' | 'finished' = 'begun';
  /** The session's id. */
  id = '';
  #tag = '';
  member: Member | null = null;
  #wishes: Wishes | null = null;
  /** The record of an earlier connection, if this one resumes it; kept until it mines. */
  record: SessionRecord | null = null;
  #isResumed = false;
  /** A request waits for the main thread: those after it must wait too, or answers would overtake each other. */
  busy = false;
  readonly #service: StratumService;
  readonly #desk: SessionDesk;
  readonly #host: LoginHost;
  readonly #session: Refuser;
  /** Null until it has subscribed. */
  #numbers: ConnectionNumbers | null = null;
  #agent = '';
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

  /** What a request lacks that only a miner may send. */
  get missing(): RefusalCode {
    return this.#numbers === null ? CODE.not_subscribed : CODE.not_authorized;
  }

  subscribe(id: AnswerId, asked: Subscribe): void {
    if (this.#numbers !== null) {
      this.#session.refuse(id, CODE.invalid_request, 'subscribed already');
      return;
    }
    if (!this.#desk.ready) {
      this.#putOff(id, CODE.not_ready);
      return;
    }
    this.#agent = asked.agent;
    this.#tag = tagOf(this.#service, asked.tag);
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
    // Where all have one header, a resumed search would find again what it found before: a new one has a prefix of its own. A farm
    // that has used up its generations, which takes days of ever new share targets, begins anew too.
    const isOver = this.#service.nonceEnd !== undefined || (record !== null && isUsedUp(record));
    if (record === null || record.service !== this.#service.name || isOver) {
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
    this.#isResumed = isKnown;
    this.id = record.id;
    this.#tag = record.tag;
    // A name that this process did not give is not used for further jobs: the headers stay distinct if several
    // connections present the same record, and the jobs say which process sent them (S35).
    const owner = isKnown && isNamedBy(bootId, record.owner) ? record.owner : numbers.owner;
    const resumed = { ...numbers, prefix: record.prefix, owner };
    this.member = this.#memberOf(resumed, record.account, record.worker);
    this.#subscribed(this.#open, resumed);
  }

  /** `complete`: nothing has to be waited for. */
  authorize(id: AnswerId, asked: Authorize): 'complete' | 'open' {
    const numbers = this.#numbers;
    if (numbers === null) {
      this.#session.refuse(id, CODE.not_subscribed);
      return 'open';
    }
    let address: string;
    let account: Bytes;
    let worker: string;
    let wishes: Wishes;
    try {
      ({ address, account, worker } = this.#nameOf(asked.username));
      wishes = parsePassword(asked.password);
      // The port decides, and not the miner: who rents hash rate gave that number.
      wishes.fixedWork = this.#service.fixedWork ?? wishes.fixedWork;
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error;
      this.#session.decline(id, answerTo(error), error.message);
      return 'open';
    }
    if (this.member !== null && (!equalBytes(this.member.account, account) || this.member.worker !== worker)) {
      this.#session.decline(id, CODE.invalid_request, 'another username was authorized already');
      return 'open';
    }
    if (this.#state !== 'begun') {
      this.#host.authorized(id, { address, worker });
      return 'open';
    }
    if (!this.#desk.ready) {
      this.#putOff(id, CODE.not_ready);
      return 'open';
    }
    this.#wasPutOff = false;
    this.#wishes = Object.values(wishes).every((wish) => wish === null) ? null : wishes;
    this.#state = 'authorized';
    this.#open = id;
    this.#address = address;
    if (this.#isResumed) return 'complete';
    this.member = this.#memberOf(numbers, account, worker);
    if (!this.#desk.asksSink) return 'complete';
    this.busy = true;
    this.#host.own(this.member);
    return 'open';
  }

  #nameOf(username: string): { address: string; account: Bytes; worker: string } {
    const { worksFor } = this.#service;
    if (worksFor !== undefined && !(worksFor.keepsAddresses === true && ANY_ADDRESS.test(username))) {
      const { address, account } = worksFor;
      return { address, account, worker: rigOf(username, address) };
    }
    const { text, address, worker } = parseUsername(username, this.#desk.network.name, this.#desk.readAddress);
    return { address: text, account: address.payload, worker };
  }

  /** The sink keeps what the miner finds. Null where nobody waits for that any more. */
  owned(): LoggedIn | null {
    this.busy = false;
    const { id, member, record } = this;
    if (this.#state !== 'authorized' || this.#numbers === null || member === null) return null;
    this.#state = 'finished';
    const { prefix } = this.#numbers;
    return { id, prefix, member, wishes: this.#wishes, record, isResumed: this.#isResumed };
  }

  /** An address has one spelling (protocol/address.ts), so the answer repeats the miner's text. */
  answer({ member }: LoggedIn): void {
    this.record = null;
    this.#host.authorized(this.#open, { address: this.#address, worker: member.worker });
    this.#address = '';
  }

  /** The sink could not register the miner now, which is not the miner's fault, or has a reason not to. */
  notOwned(reason?: string): void {
    this.busy = false;
    this.#state = 'begun';
    this.member = null;
    if (reason === undefined) this.#putOff(this.#open, CODE.internal);
    else this.#session.decline(this.#open, CODE.bad_address, reason);
  }

  #begin(id: AnswerId): void {
    this.id = this.#desk.newSessionId();
    const numbers = this.#desk.newNumbers(this.#service.mark);
    // Numbers of connections are those of a thread; here no two of any thread may have the same prefix.
    const prefix = this.#service.nonceEnd === undefined ? numbers.prefix : this.#desk.takePrefix();
    this.#subscribed(id, { ...numbers, prefix });
  }

  leave(): void {
    if (this.#service.nonceEnd !== undefined && this.#numbers !== null) this.#desk.freePrefix(this.#numbers.prefix);
  }

  #subscribed(id: AnswerId, numbers: ConnectionNumbers): void {
    this.#numbers = numbers;
    this.#wasPutOff = false;
    const { prefix } = numbers;
    const { pool } = this.#service;
    this.#host.subscribed(id, {
      session: this.id,
      noncePrefix: noncePrefixOf(prefix, this.#service.nonceEnd),
      network: this.#desk.network.id,
      server: this.#desk.server,
      pool: pool === null ? null : { address: pool.address, name: pool.name },
    });
  }

  #memberOf({ handle, owner }: ConnectionNumbers, account: Bytes, worker: string): Member {
    const service = this.#service.name;
    return { handle, owner, service, account, worker, tag: this.#tag, agent: this.#agent };
  }

  /** The server is not ready, or the sink could not register the miner. */
  #putOff(id: AnswerId, code: (typeof CODE)['internal' | 'not_ready']): void {
    this.#wasPutOff = true;
    this.#session.refuse(id, code);
  }
}
