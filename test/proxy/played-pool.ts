/** A pool played for a proxy: farm sessions of svc-mining-v2 as docs/protocol/stratum.md has them, and whatever the test wants it to do wrong. */
import { randomInt } from 'node:crypto';
import { createServer, type Socket } from 'node:net';
import { onTestFinished } from 'vitest';
import { type Bytes, concat, toHex } from '../../protocol/bytes.ts';
import { REWARD_ROOT_OFFSET } from '../../protocol/ledger/header.ts';
import { meetsTarget, targetOfWork, targetToBytes, workOfTarget } from '../../protocol/ledger/target.ts';
import { CODE, errorReply } from '../../protocol/stratum/errors.ts';
import { type FarmJob, type FarmSubmit, jobOfFarm } from '../../protocol/stratum/farm.ts';
import { FrameSplitter, V2_MAGIC } from '../../protocol/stratum/frame.ts';
import { type ClientFrame, decodeClientFrame, encodeServerFrame, type ServerFrame } from '../../protocol/stratum/v2.ts';
import { accountOf, addressOf } from '../bridge/stratum-client.ts';
import { TemplateSource } from '../bridge/template-source.ts';
import { powHash } from '../pow-hash.ts';

export type Booked = FarmSubmit & { readonly worker: string; readonly work: bigint };

export class PlayedPool {
  readonly source = new TemplateSource();
  /** How it answers 0x07: with rigs, or as a server that does not know it. */
  farm: number | 'unknown' = 100;
  pool = { address: addressOf(9), name: 'Played' };
  payout: Bytes = accountOf(9);
  shareWork = 8n;
  /** Sessions that can be resumed. */
  resumes = true;
  /** What it says of each accepted share: that it is a block. */
  blockId: Bytes | undefined;
  /** Whether it answers submits. */
  answers = true;
  readonly booked: Booked[] = [];
  readonly refused: number[] = [];
  readonly passwords: string[] = [];
  readonly usernames: string[] = [];
  highest = -1;
  first = 0;
  #jobId = 0;
  /** Those of two pools differ. */
  #session = randomInt(1_000_000);
  #socket: Socket | undefined;
  #isFarm = false;
  readonly #jobs = new Map<number, FarmJob>();
  readonly #seen = new Set<string>();
  readonly #names = new Map<number, string>();
  readonly #server = createServer((socket) => this.#take(socket));
  #workSum = 0n;

  static async start(): Promise<PlayedPool> {
    const pool = new PlayedPool();
    await new Promise<void>((resolve) => pool.#server.listen(0, '127.0.0.1', resolve));
    onTestFinished(() => pool.close());
    return pool;
  }

  get url(): string {
    return `stratum2+tcp://127.0.0.1:${(this.#server.address() as { port: number }).port}`;
  }

  get isConnected(): boolean {
    return this.#socket !== undefined && !this.#socket.destroyed;
  }

  /** Cuts the connection. */
  cut(): void {
    this.#socket?.destroy();
  }

  close(): void {
    this.cut();
    this.#server.close();
  }

  #say(frame: ServerFrame): void {
    this.#socket?.write(encodeServerFrame(frame));
  }

  #take(socket: Socket): void {
    this.#socket?.destroy();
    this.#socket = socket;
    this.#isFarm = false;
    this.#names.clear();
    const frames = new FrameSplitter();
    let magic = V2_MAGIC.length;
    socket.on('error', () => undefined);
    socket.on('data', (data: Uint8Array) => {
      const skipped = Math.min(magic, data.length);
      magic -= skipped;
      frames.push(Uint8Array.from(data.subarray(skipped)), (type, payload) => {
        void this.#handle(decodeClientFrame({ type, payload: payload.slice() }));
        return true;
      });
    });
  }

  async #handle(frame: ClientFrame): Promise<void> {
    switch (frame.type) {
      case 'subscribe': {
        const { session } = frame.subscribe;
        if (session === null || !this.resumes) this.#forget();
        const named = {
          session: String(this.#session).padStart(32, '0'),
          noncePrefix: Uint8Array.of(1, 2),
          network: 4,
        };
        this.#say({ type: 'subscribed', subscribed: { ...named, server: 'played/1', pool: this.pool } });
        return;
      }
      case 'authorize': {
        this.passwords.push(frame.authorize.password);
        this.usernames.push(frame.authorize.username);
        const [address = '', worker = ''] = frame.authorize.username.split('.');
        this.#say({ type: 'authorized', authorized: { address, worker } });
        await this.job();
        return;
      }
      case 'ping':
        this.#say({ type: 'pong', value: frame.value });
        return;
      case 'farm':
        if (this.farm === 'unknown') {
          this.#say({ type: 'error', error: errorReply(CODE.unknown_method) });
          return;
        }
        this.#say({ type: 'farmOffer', offer: { rigs: this.farm, submitsPerSecond: 1_000 } });
        this.#isFarm = this.farm > 0;
        this.first = this.highest + 1;
        if (this.#isFarm) await this.job();
        return;
      case 'rig':
        if (frame.rig.worker === '') this.#names.delete(frame.rig.index);
        else this.#names.set(frame.rig.index, frame.rig.worker);
        return;
      case 'farmSubmit':
        if (this.answers) this.#judge(frame.sequence, frame.submit);
        return;
      default:
        return;
    }
  }

  #forget(): void {
    this.#session++;
    this.#jobs.clear();
    this.#workSum = 0n;
    this.highest = -1;
  }

  /** A new job for whoever is connected. */
  async job({
    clean = false,
    shareWork = this.shareWork,
  }: {
    clean?: boolean;
    shareWork?: bigint;
  } = {}): Promise<void> {
    if (shareWork !== this.shareWork) this.first = this.highest + 1;
    this.shareWork = shareWork;
    const { header: whole } = await this.source.template(0);
    const header = Uint8Array.from(whole).fill(0, REWARD_ROOT_OFFSET, REWARD_ROOT_OFFSET + 48);
    const farm: FarmJob = {
      jobId: ++this.#jobId,
      header,
      shareTarget: targetOfWork(shareWork),
      epoch: 0,
      payout: this.payout,
      extranonceHead: concat(Uint8Array.of(0), new Uint8Array(12).fill(5), Uint8Array.of(this.#session & 0xff)),
      clean,
      firstGeneration: this.first,
    };
    if (clean) this.#jobs.clear();
    if (this.#isFarm) {
      this.#jobs.set(farm.jobId, farm);
      this.#say({ type: 'farmJob', job: farm });
    } else this.#say({ type: 'job', job: jobOfFarm(farm, 0) });
  }

  #judge(sequence: number, submit: FarmSubmit): void {
    const code = this.#codeOf(submit);
    if (code !== undefined) {
      this.refused.push(code);
      this.#say({ type: 'rejected', sequence, code });
      this.#say({ type: 'accepted', through: sequence, count: 0, work: this.#workSum });
      return;
    }
    const work = workOfTarget((this.#jobs.get(submit.jobId) as FarmJob).shareTarget);
    this.#workSum += work;
    this.highest = Math.max(this.highest, submit.generation);
    this.booked.push({ ...submit, worker: this.#names.get(submit.rig) ?? '', work });
    if (this.blockId !== undefined) this.#say({ type: 'block', sequence, blockId: this.blockId });
    this.#say({ type: 'accepted', through: sequence, count: 1, work: this.#workSum });
  }

  #codeOf({ jobId, generation, rig, nonce }: FarmSubmit) {
    const farm = this.#jobs.get(jobId);
    if (farm === undefined) return CODE.unknown_job;
    if (generation < farm.firstGeneration) return CODE.internal;
    if (!this.#names.has(rig)) return CODE.not_authorized;
    const header = concat(jobOfFarm(farm, generation).header.subarray(0, 304), nonce);
    const key = toHex(header);
    if (this.#seen.has(key)) return CODE.duplicate;
    if (!meetsTarget(powHash(0, header), targetToBytes(farm.shareTarget))) return CODE.above_target;
    this.#seen.add(key);
    return undefined;
  }
}
