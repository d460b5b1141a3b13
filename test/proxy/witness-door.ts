/**
 * A link between a proxy and a front end of a pool that can be cut, and that notes what went over it: which shares the proxy passed on, and what the
 * pool answered to each, whether or not the answer arrived.
 */
import { connect, createServer, type Server, type Socket } from 'node:net';
import { headerDigest, shareIdentity } from '../../protocol/books/share-identity.ts';
import { type Bytes, toHex } from '../../protocol/bytes.ts';
import { workOfTarget } from '../../protocol/ledger/target.ts';
import { CODE } from '../../protocol/stratum/errors.ts';
import { type FarmJob, jobOfFarm } from '../../protocol/stratum/farm.ts';
import { FrameSplitter, V2_MAGIC } from '../../protocol/stratum/frame.ts';
import { decodeClientFrame, decodeServerFrame, type ServerFrame } from '../../protocol/stratum/v2.ts';

const HOST = '127.0.0.1';
/** Jobs of a session that are kept: those of some minutes. */
const MAX_JOBS = 1_000;

export type Passed = { readonly work: bigint; fate: 'unanswered' | 'accepted' | number };

/** What all links of a run saw, by the identity of the share. */
export class Witness {
  readonly passed = new Map<string, Passed>();
  readonly faults: string[] = [];
  readonly refused = new Map<number, number>();
  again = 0;
  receipts = 0;
  readonly #jobs = new Map<string, Map<number, FarmJob>>();

  jobsOf(session: string): Map<number, FarmJob> {
    const jobs = this.#jobs.get(session) ?? new Map<number, FarmJob>();
    this.#jobs.set(session, jobs);
    return jobs;
  }

  count(fate: Passed['fate']): number {
    return [...this.passed.values()].filter((share) => share.fate === fate).length;
  }
}

class Overheard {
  readonly #witness: Witness;
  readonly #client = new FrameSplitter();
  readonly #server = new FrameSplitter();
  readonly #pending = new Map<number, string>();
  #skip = V2_MAGIC.length;
  #jobs = new Map<number, FarmJob>();

  constructor(witness: Witness) {
    this.#witness = witness;
  }

  fromProxy(data: Bytes): void {
    const skipped = Math.min(this.#skip, data.length);
    this.#skip -= skipped;
    this.#client.push(data.subarray(skipped), (type, payload) => {
      const frame = decodeClientFrame({ type, payload: payload.slice() });
      if (frame.type === 'farmSubmit') {
        const { jobId, generation, nonce } = frame.submit;
        const job = this.#jobs.get(jobId);
        if (job === undefined) this.#witness.faults.push(`a share of job ${jobId} that was never sent`);
        else {
          const { header } = jobOfFarm(job, generation);
          const identity = toHex(shareIdentity(headerDigest(header), nonce));
          if (this.#witness.passed.has(identity)) this.#witness.again++;
          else this.#witness.passed.set(identity, { work: workOfTarget(job.shareTarget), fate: 'unanswered' });
          this.#pending.set(frame.sequence, identity);
        }
      }
      return true;
    });
  }

  fromPool(data: Bytes): void {
    this.#server.push(data, (type, payload) => {
      this.#answer(decodeServerFrame({ type, payload: payload.slice() }));
      return true;
    });
  }

  #answer(frame: ServerFrame): void {
    if (frame.type === 'subscribed') this.#jobs = this.#witness.jobsOf(frame.subscribed.session);
    else if (frame.type === 'receipt') this.#witness.receipts++;
    else if (frame.type === 'farmJob') {
      this.#jobs.set(frame.job.jobId, frame.job);
      const [oldest] = this.#jobs.keys();
      if (this.#jobs.size > MAX_JOBS && oldest !== undefined) this.#jobs.delete(oldest);
    } else if (frame.type === 'rejected') {
      const { sequence, code } = frame;
      this.#witness.refused.set(code, (this.#witness.refused.get(code) ?? 0) + 1);
      // What it has already is as good as accepted.
      this.#settle(sequence, code === CODE.duplicate ? 'accepted' : code);
    } else if (frame.type === 'accepted')
      for (const sequence of [...this.#pending.keys()])
        if (sequence <= frame.through) this.#settle(sequence, 'accepted');
  }

  #settle(sequence: number, fate: Passed['fate']): void {
    const share = this.#witness.passed.get(this.#pending.get(sequence) ?? '');
    this.#pending.delete(sequence);
    if (share === undefined) this.#witness.faults.push(`an answer to ${sequence}, which nobody sent`);
    else if (share.fate !== 'accepted') share.fate = fate;
  }
}

export class WitnessDoor {
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  #isOpen = true;

  private constructor(server: Server) {
    this.#server = server;
  }

  static async open(target: () => number, witness: Witness): Promise<WitnessDoor> {
    const server = createServer();
    const door = new WitnessDoor(server);
    server.on('connection', (socket) => door.#join(socket, target(), new Overheard(witness)));
    await new Promise<void>((resolve) => server.listen(0, HOST, resolve));
    return door;
  }

  get port(): number {
    return (this.#server.address() as { port: number }).port;
  }

  #join(near: Socket, port: number, overheard: Overheard): void {
    if (!this.#isOpen) {
      near.destroy();
      return;
    }
    const far = connect(port, HOST);
    const both = [near, far];
    for (const socket of both) {
      this.#sockets.add(socket);
      socket.setNoDelay();
      socket.on('error', () => undefined);
      socket.on('close', () => {
        for (const each of both) {
          each.destroy();
          this.#sockets.delete(each);
        }
      });
    }
    near.on('data', (data: Buffer) => {
      overheard.fromProxy(data);
      far.write(data);
    });
    far.on('data', (data: Buffer) => {
      overheard.fromPool(data);
      near.write(data);
    });
  }

  /** All connections break; new ones are refused until `mend`. */
  cut(): void {
    this.#isOpen = false;
    for (const socket of this.#sockets) socket.destroy();
  }

  mend(): void {
    this.#isOpen = true;
  }

  close(): void {
    this.cut();
    this.#server.close();
  }
}
