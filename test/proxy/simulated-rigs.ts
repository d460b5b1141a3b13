/** Many rigs of both wires in one process, with real hashes: each finds shares on its own newest job, one in flight. Every share is noted with what became of it. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Verifier } from '../../kernels/verifier.ts';
import { headerDigest, shareIdentity } from '../../protocol/books/share-identity.ts';
import { type Bytes, toHex } from '../../protocol/bytes.ts';
import { NONCE_OFFSET } from '../../protocol/ledger/header.ts';
import { meetsTarget, targetToBytes, workOfTarget } from '../../protocol/ledger/target.ts';
import type { Job } from '../../protocol/stratum/messages.ts';
import { composeNonce } from '../../protocol/stratum/nonce.ts';
import { V1Client, V2Client } from '../bridge/stratum-client.ts';

type Client = V1Client | V2Client;

export type FoundShare = {
  readonly rig: string;
  readonly proxy: number;
  readonly work: bigint;
  readonly atMillis: number;
  /** The code of the answer, 0 for accepted; none when the connection broke first. */
  code: number | undefined;
};

/** Harder than any pool's: a proxy then gives its rigs the share work of the pool, and passes every share on. */
const HARDEST = 'd=1000000000';
/** Rigs that are hashed for together, and nonces of each. */
const TOGETHER = 50;
const BATCH = 16;
const BACK_MILLIS = 500;

class SimulatedRig {
  readonly name: string;
  readonly proxy: number;
  readonly #port: number;
  readonly #Form: typeof V1Client | typeof V2Client;
  client: Client | undefined;
  /** Shares without an answer; nothing else is tried meanwhile. */
  inFlight = 0;
  from = 0n;
  logins = 0;

  constructor(name: string, proxy: number, port: number, Form: typeof V1Client | typeof V2Client) {
    this.name = name;
    this.proxy = proxy;
    this.#port = port;
    this.#Form = Form;
  }

  async stayConnected(isWanted: () => boolean): Promise<void> {
    while (isWanted()) {
      const client: Client | undefined = await this.#Form.open(this.#port).catch(() => undefined);
      if (client !== undefined) {
        const isIn = await Promise.race([
          client.login(this.name, HARDEST).then(
            () => true,
            () => false,
          ),
          client.closed.then(() => false),
        ]);
        if (isIn) {
          this.logins++;
          this.client = client;
          await client.closed;
          this.client = undefined;
        }
        client.close();
      }
      await sleep(BACK_MILLIS * (0.5 + Math.random()));
    }
  }

  /** Only the newest job is kept: jobs of an hour for a thousand rigs are gigabytes. */
  job(client: Client): Job {
    if (client instanceof V1Client) client.received.length = 0;
    else client.frames.length = 0;
    client.jobs.splice(0, client.jobs.length - 1);
    return client.jobs[0] as Job;
  }
}

export class SimulatedRigs {
  readonly rigs: readonly SimulatedRig[];
  readonly shares = new Map<string, FoundShare>();
  hashes = 0;
  readonly #verifier: Verifier;
  readonly #hashesPerSecond: number;
  readonly #lives: Promise<void>[];
  readonly #hashing: Promise<void>;
  readonly #answers = new Set<Promise<void>>();
  #isHashing = true;
  #isWanted = true;

  constructor(
    proxies: readonly { readonly port: number; readonly prefix: string }[],
    perProxy: number,
    hashesPerSecond: number,
    verifier: Verifier,
  ) {
    this.#verifier = verifier;
    this.#hashesPerSecond = hashesPerSecond;
    this.rigs = Array.from({ length: perProxy }, (_, i) =>
      proxies.map(
        ({ port, prefix }, proxy) =>
          new SimulatedRig(`${prefix}rig-${i}`, proxy, port, i % 2 === 0 ? V1Client : V2Client),
      ),
    ).flat();
    this.#lives = this.rigs.map((rig) => rig.stayConnected(() => this.#isWanted));
    this.#hashing = this.#hash();
  }

  get connected(): number {
    return this.rigs.filter(({ client }) => client !== undefined).length;
  }

  /** No more shares are found, and those in flight have their answers. */
  async rest(): Promise<void> {
    this.#isHashing = false;
    await this.#hashing;
    await Promise.all(this.#answers);
  }

  async stop(): Promise<void> {
    await this.rest();
    this.#isWanted = false;
    for (const { client } of this.rigs) client?.close();
    await Promise.all(this.#lives);
  }

  async #hash(): Promise<void> {
    const begun = performance.now();
    let due = 0;
    while (this.#isHashing)
      for (let at = 0; at < this.rigs.length && this.#isHashing; at += TOGETHER) {
        const tried = await this.#turn(this.rigs.slice(at, at + TOGETHER));
        due += (Math.max(tried, TOGETHER) * 1_000) / this.#hashesPerSecond;
        // A busy machine does fewer hashes, not more of them later.
        due = Math.max(due, performance.now() - begun - 1_000);
        await sleep(Math.max(1, due - (performance.now() - begun)));
      }
  }

  async #turn(rigs: readonly SimulatedRig[]): Promise<number> {
    const tries = rigs.flatMap((rig) => {
      const { client } = rig;
      if (client === undefined || rig.inFlight > 0) return [];
      const job = rig.job(client);
      return Array.from({ length: BATCH }, () => {
        const nonce = composeNonce(rig.from++, client.prefix);
        const header = Uint8Array.from(job.header);
        header.set(nonce, NONCE_OFFSET);
        return { rig, client, job, nonce, header };
      });
    });
    const hashes = new Array<Bytes>(tries.length);
    for (const [epoch, some] of Map.groupBy(tries.keys(), (i) => tries[i]?.job.epoch as number)) {
      const indexes = [...some];
      const found = await this.#verifier.hashMany(
        epoch,
        indexes.map((i) => tries[i]?.header as Bytes),
      );
      for (const [i, hash] of found.entries()) hashes[indexes[i] as number] = hash;
    }
    this.hashes += tries.length;
    for (const [i, { rig, client, job, nonce }] of tries.entries())
      if (meetsTarget(hashes[i] as Bytes, targetToBytes(job.shareTarget))) this.#found(rig, client, job, nonce);
    return tries.length;
  }

  #found(rig: SimulatedRig, client: Client, job: Job, nonce: Bytes): void {
    // It broke while the hash was made: nobody to send it to.
    if (rig.client !== client) return;
    const share: FoundShare = {
      rig: rig.name,
      proxy: rig.proxy,
      work: workOfTarget(job.shareTarget),
      atMillis: Date.now(),
      code: undefined,
    };
    this.shares.set(toHex(shareIdentity(headerDigest(job.header), nonce)), share);
    rig.inFlight++;
    const answer = Promise.race([client.submitCode(job.jobId, nonce), client.closed.then(() => undefined)]).then(
      (code) => {
        share.code = code ?? undefined;
        rig.inFlight--;
      },
    );
    this.#answers.add(answer);
    void answer.then(() => this.#answers.delete(answer));
  }
}
