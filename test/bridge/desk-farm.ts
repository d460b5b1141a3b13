/** The client of a farm session on a desk without sockets. What its nonces are worth is for the bed's hash to say. */
import type { Conversation } from '../../bridge/connection/conversation.ts';
import type { Bytes } from '../../protocol/bytes.ts';
import type { FarmJob, FarmOffer } from '../../protocol/stratum/farm.ts';
import { FrameSplitter } from '../../protocol/stratum/frame.ts';
import { type ClientFrame, decodeServerFrame, encodeClientFrame, type ServerFrame } from '../../protocol/stratum/v2.ts';
import { BRIDGE } from './bed.ts';
import { type DeskBed, RecordingPeer } from './desk-bed.ts';
import { addressOf } from './stratum-client.ts';

let used = 0;

export class DeskFarm {
  readonly bed: DeskBed;
  readonly peer = new RecordingPeer();
  readonly conversation: Conversation;
  #sequence = 0;
  readonly #splitter = new FrameSplitter();
  #read = 0;
  #said: ServerFrame[] = [];

  constructor(bed: DeskBed, service = BRIDGE, address = '203.0.113.7') {
    this.bed = bed;
    this.conversation = bed.desk.open(service, 'v2', this.peer, address);
  }

  /** Sends, and waits for nothing. */
  put(...frames: ClientFrame[]): void {
    for (const frame of frames) this.conversation.receive(encodeClientFrame(frame));
  }

  async send(...frames: ClientFrame[]): Promise<void> {
    this.put(...frames);
    await this.bed.settle();
    this.bed.desk.tick();
    await this.bed.settle();
  }

  /** Everything since the beginning, or since it was forgotten; each frame is read once. */
  get said(): readonly ServerFrame[] {
    const { written } = this.peer;
    for (; this.#read < written.length; this.#read++)
      this.#splitter.push(written[this.#read] as Bytes, (type, payload) => {
        this.#said.push(decodeServerFrame({ type, payload: payload.slice() }));
        return true;
      });
    return this.#said;
  }

  forget(): void {
    this.peer.written.length = 0;
    this.#read = 0;
    this.#said = [];
  }

  #all<T extends ServerFrame['type']>(type: T): Extract<ServerFrame, { type: T }>[] {
    return this.said.filter((frame): frame is Extract<ServerFrame, { type: T }> => frame.type === type);
  }

  get offer(): FarmOffer | undefined {
    return this.#all('farmOffer').at(-1)?.offer;
  }

  get jobs(): FarmJob[] {
    return this.#all('farmJob').map(({ job }) => job);
  }

  /** The newest. */
  get job(): FarmJob {
    return this.jobs.at(-1) as FarmJob;
  }

  /** Of the nonces of its plain jobs. */
  get prefix(): Bytes {
    return this.#all('subscribed')[0]?.subscribed.noncePrefix ?? new Uint8Array(2);
  }

  get plainJobs(): number[] {
    return this.#all('job').map(({ job }) => job.jobId);
  }

  /** Every code of an error frame. */
  get codes(): number[] {
    return this.#all('error').map(({ error }) => error.code);
  }

  get blocks(): number[] {
    return this.#all('block').map(({ sequence }) => sequence);
  }

  get work(): bigint {
    return this.#all('accepted').at(-1)?.work ?? 0n;
  }

  async login({ session = null as string | null, password = 'd=32', account = 1 } = {}): Promise<string> {
    await this.send({ type: 'subscribe', subscribe: { agent: 'x/1', tag: '', session } });
    await this.send({ type: 'authorize', authorize: { username: `${addressOf(account)}.hall`, password } });
    return this.#all('subscribed')[0]?.subscribed.session ?? '';
  }

  /** Logs in, asks for a farm and names the rigs. */
  async begin(
    names: readonly string[],
    { rigs = 8, ...login }: Parameters<DeskFarm['login']>[0] & { rigs?: number } = {},
  ): Promise<string> {
    const session = await this.login(login);
    await this.send({ type: 'farm', rigs });
    await this.name(...names);
    return session;
  }

  async name(...names: readonly string[]): Promise<void> {
    await this.send(...names.map((worker, index): ClientFrame => ({ type: 'rig', rig: { index, worker } })));
  }

  /** A nonce that nobody has used yet, with the first byte as asked; all eight bytes are its own. */
  nonce(first = 5): Bytes {
    const nonce = new Uint8Array(8);
    new DataView(nonce.buffer).setUint32(4, 0x8000_0000 + ++used * 0x1_0001);
    nonce[0] = first;
    return nonce;
  }

  /** 0 when it was accepted, or the code of the refusal. */
  async submit(generation: number, { job = this.job, rig = 0, nonce = this.nonce() } = {}): Promise<number> {
    const sequence = ++this.#sequence;
    await this.send({ type: 'farmSubmit', sequence, submit: { jobId: job.jobId, generation, rig, nonce } });
    return this.#verdict(sequence);
  }

  async submitPlain(jobId: number, nonce: Bytes): Promise<number> {
    const sequence = ++this.#sequence;
    await this.send({ type: 'submit', sequence, submit: { jobId, nonce } });
    return this.#verdict(sequence);
  }

  #verdict(sequence: number): number {
    const rejected = this.#all('rejected').find((frame) => frame.sequence === sequence);
    if (rejected !== undefined) return rejected.code;
    if (this.#all('accepted').some(({ through }) => through >= sequence)) return 0;
    throw new Error('no verdict');
  }

  end(): void {
    this.bed.desk.gone(this.conversation, 'test');
  }
}
