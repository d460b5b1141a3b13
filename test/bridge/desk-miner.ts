/** A v1 miner on a desk without sockets. What its nonces are worth is for the bed's hash to say. */
import type { Conversation } from '../../bridge/connection/conversation.ts';
import { type Bytes, utf8 } from '../../protocol/bytes.ts';
import type { Job } from '../../protocol/stratum/messages.ts';
import { decodeServerMessage, type ServerMessage } from '../../protocol/stratum/v1-answer.ts';
import { type Call, encodeRequest, type Method, type RequestId } from '../../protocol/stratum/v1-request.ts';
import { type DeskBed, RecordingPeer } from './desk-bed.ts';
import { addressOf } from './stratum-client.ts';

export class DeskMiner {
  readonly bed: DeskBed;
  readonly peer = new RecordingPeer();
  readonly conversation: Conversation;
  readonly #methods = new Map<RequestId, Method>();
  #id = 0;
  #nonce = 0;
  prefix: Bytes = new Uint8Array(2);

  constructor(bed: DeskBed, address?: string) {
    this.bed = bed;
    this.conversation = bed.open('v1', this.peer, address);
  }

  /** Sends it; what it is answered is `said` after the bed has settled. */
  send(call: Call): RequestId {
    const id = ++this.#id;
    this.#methods.set(id, call.method);
    this.conversation.receive(utf8(`${encodeRequest(id, call)}\n`));
    return id;
  }

  async ask(call: Call): Promise<ServerMessage> {
    const id = this.send(call);
    await this.bed.settle();
    const answer = this.answerTo(id);
    if (answer === undefined) throw new Error('no answer');
    return answer;
  }

  answerTo(id: RequestId): ServerMessage | undefined {
    return this.said.find((message) => message.kind !== 'notification' && message.id === id);
  }

  get said(): ServerMessage[] {
    const text = Buffer.concat(this.peer.written).toString();
    return text
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => decodeServerMessage(utf8(line), (id) => this.#methods.get(id)));
  }

  get jobs(): Job[] {
    return this.said.flatMap((message) =>
      message.kind === 'notification' && message.method === 'mining.notify' ? [message.params] : [],
    );
  }

  /** Every code it was refused with. */
  get codes(): number[] {
    return this.said.flatMap((message) => (message.kind === 'error' ? [message.error.code] : []));
  }

  async login({ session = null as string | null, password = 'd=32', worker = 'w' } = {}): Promise<string> {
    const subscribed = await this.ask({ method: 'mining.subscribe', params: { agent: 'x/1', tag: '', session } });
    if (subscribed.kind !== 'result' || subscribed.method !== 'mining.subscribe')
      throw new Error(JSON.stringify(subscribed));
    await this.ask({ method: 'mining.authorize', params: { username: `${addressOf(1)}.${worker}`, password } });
    this.prefix = subscribed.result.noncePrefix;
    return subscribed.result.session;
  }

  /** A nonce that it has not used yet, with the first byte as asked. */
  nonce(first = 2): Bytes {
    const nonce = new Uint8Array(8);
    new DataView(nonce.buffer).setUint32(1, ++this.#nonce);
    nonce[0] = first;
    nonce.set(this.prefix, 6);
    return nonce;
  }

  /** The block id of the answer, null for a mere share, or the code of a refusal. */
  async hit({ jobId }: Pick<Job, 'jobId'>, first = 2): Promise<Bytes | null | number> {
    const answer = await this.ask({ method: 'mining.submit', params: { jobId, nonce: this.nonce(first) } });
    if (answer.kind === 'error') return answer.error.code;
    if (answer.kind !== 'result' || answer.method !== 'mining.submit') throw new Error('no verdict');
    return answer.result.blockId;
  }

  end(): void {
    this.bed.desk.gone(this.conversation, 'test');
  }
}
