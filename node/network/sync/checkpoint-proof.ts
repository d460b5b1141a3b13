/**
 * Reads headers back from the next checkpoint. A chain signed with stolen keys looks valid until the checkpoint's
 * height, when a node would already have executed it. So before anything below a checkpoint is executed, the headers
 * are read back from it to the own head, from any peers: the chain of hashes proves them. Every 96th identifier is
 * kept, 1 MB for three million cuts.
 */
import { type Bytes, equalBytes } from '../../../protocol/bytes.ts';
import { decodeCutHeader } from '../../../protocol/ledger/cut.ts';
import type { SteadyClock } from '../../../runtime/clock/clock.ts';
import type { LogFields, Logger } from '../../../runtime/log/log.ts';
import { type Checkpoint, nextCheckpoint } from '../../chain/checkpoints.ts';
import type { CutLedger } from '../../chain/cut-ledger.ts';
import { PeerFault, StingyAnswer } from '../peers/peer-fault.ts';
import type { PeerName } from '../thread/host-types.ts';
import { type Place, provenBack, UnprovenError } from './cut-proof.ts';
import type { AskHeaders, HeadersQuestion } from './epoch-proof.ts';
import { batchEnd, decodeHeadersAnswer, MAX_CUTS, MAX_HEADERS } from './sync-messages.ts';

const LOG_MILLIS = 10_000;

export type CheckpointProofDependencies = {
  readonly ledger: Pick<CutLedger, 'head'>;
  readonly checkpoints: readonly Checkpoint[];
  readonly ask: AskHeaders;
  readonly log: Logger;
  readonly steady: SteadyClock;
};

/** The own chain contradicts the checkpoint. */
export class ContradictedError extends Error {}

type Way = { readonly checkpoint: Checkpoint; readonly marks: Map<number, Bytes>; lowest: Place };

const isMark = (height: number): boolean => (height + 1) % MAX_CUTS === 0;

export class CheckpointProof {
  readonly #with: CheckpointProofDependencies;
  #way: Way | undefined;
  #loggedAt = Number.NEGATIVE_INFINITY;
  /** Answers of several peers may wait for it. */
  #walking: Promise<Way> | undefined;
  /** Identifiers of the batch that was last read. */
  #batch: ReadonlyMap<number, Bytes> = new Map();
  #reading: Promise<void> | undefined;

  constructor(dependencies: CheckpointProofDependencies) {
    this.#with = dependencies;
  }

  /**
   * The way back from the next checkpoint to the own head, which has to be read before the cuts from this height on are
   * used; undefined if it was, or there is none. A ContradictedError says that the own chain is another.
   */
  lead(peer: PeerName, from: number): Promise<void> | undefined {
    const { checkpoints } = this.#with;
    const checkpoint = nextCheckpoint(checkpoints, from);
    if (checkpoint === undefined) return undefined;
    if (this.#way?.checkpoint !== checkpoint)
      this.#way = { checkpoint, marks: new Map([[checkpoint.height, checkpoint.cutId]]), lowest: checkpoint };
    const way = this.#way;
    if (way.lowest.height < from) {
      this.#compare(way);
      return undefined;
    }
    this.#walking ??= this.#walk(peer, way, from).finally(() => {
      this.#walking = undefined;
    });
    return this.#walking.then((walked) => this.#compare(walked));
  }

  #compare({ lowest, checkpoint }: Way): void {
    const head = this.#with.ledger.head();
    if (lowest.height === head.height && !equalBytes(lowest.cutId, head.cutId))
      throw new ContradictedError(
        `cut ${head.height} of this data directory does not lead to the checkpoint of cut ${checkpoint.height}: compare the checkpoint with nodes that you trust; if it is right, sync into a new data directory`,
      );
  }

  /**
   * The identifier of a cut of the batch that begins after the own head, which the checkpoint proves; undefined beyond
   * it. Where the headers up to it have to be read first, until they are.
   */
  idOf(peer: PeerName, height: number, from: number): Bytes | Promise<void> | undefined {
    const way = this.#way;
    if (way === undefined || way.checkpoint.height < height) return undefined;
    const known = way.marks.get(height) ?? this.#batch.get(height);
    if (known !== undefined) return known;
    this.#reading ??= this.#read(peer, way, height, from).finally(() => {
      this.#reading = undefined;
    });
    return this.#reading;
  }

  /** Of a peer whose cut is another than that which the checkpoint proves. */
  fault(peer: PeerName, height: number): PeerFault {
    const reason = `its cut ${height} contradicts the checkpoint of cut ${this.#way?.checkpoint.height}`;
    return new PeerFault(peer, 'false_proof', reason);
  }

  /** Down to the cut before `from`. Proven headers are kept if a peer fails. */
  async #walk(first: PeerName, way: Way, from: number): Promise<Way> {
    let asked = first;
    const question = () => {
      const { lowest } = way;
      const count = Math.min(MAX_HEADERS, lowest.height - from + 1);
      return count > 0 ? ({ type: 'headers', to: lowest.height, count, lowest } as const) : undefined;
    };
    while (question() !== undefined) {
      asked = await this.#headers(asked, way.checkpoint, question, (peer, headers, places, count) => {
        for (const place of places) if (isMark(place.height)) way.marks.set(place.height, place.cutId);
        const { height, previousId } = decodeCutHeader(headers[0] as Bytes);
        if (height <= way.lowest.height) way.lowest = { height: height - 1, cutId: previousId };
        // One header at a time, the way would take days: what came is kept, and another peer is asked.
        if (places.length < count) throw new StingyAnswer(peer, `${headers.length} of ${count} headers`);
        return peer;
      });
      if (way.lowest.height >= from)
        this.#tell('info', 'headers are read back from a checkpoint', { at: way.lowest.height, to: from }, way);
    }
    return way;
  }

  /** Rejects if nobody has them. */
  async #headers(
    first: PeerName,
    checkpoint: Checkpoint,
    question: () => (HeadersQuestion & { readonly lowest: Place }) | undefined,
    use: (peer: PeerName, headers: readonly Bytes[], places: readonly Place[], count: number) => PeerName,
  ): Promise<PeerName> {
    const found = await this.#with.ask(first, question, (peer, answer, { to, count, lowest }) => {
      const { headers } = decodeHeadersAnswer(answer);
      if (headers.length === 0) {
        // It may still be syncing.
        this.#tell('warn', 'a peer does not have the cut of a checkpoint', { peer, height: to }, { checkpoint });
        throw new StingyAnswer(peer, `no header ${to}`);
      }
      if (headers.length > count) throw new PeerFault(peer, 'malformed', 'more headers than were asked for');
      return use(peer, headers, provenBackOf(peer, { lowest, checkpoint }, headers), count);
    });
    if (found !== undefined) return found;
    const left = question();
    // A late answer of somebody else brought the rest.
    if (left === undefined) return first;
    throw new UnprovenError(`nobody has the headers up to cut ${left.to}`);
  }

  #tell(level: 'info' | 'warn', message: string, fields: LogFields, { checkpoint }: Pick<Way, 'checkpoint'>): void {
    const { log, steady } = this.#with;
    if (steady() - this.#loggedAt < LOG_MILLIS) return;
    this.#loggedAt = steady();
    log[level](message, { checkpoint: checkpoint.height, ...fields });
  }

  /** The identifiers of a batch from the first cut that this node lacks on, up to the next that is kept. */
  async #read(asked: PeerName, way: Way, height: number, from: number): Promise<void> {
    const to = Math.min(batchEnd(height), way.checkpoint.height);
    const lowest = { height: to, cutId: way.marks.get(to) as Bytes };
    const question = { type: 'headers', to, count: to - from + 1, lowest } as const;
    await this.#headers(
      asked,
      way.checkpoint,
      () => question,
      (peer, headers, places, count) => {
        if (places.length < count) throw new StingyAnswer(peer, `${headers.length} of ${count} headers`);
        this.#batch = new Map(places.map((place) => [place.height, place.cutId]));
        return peer;
      },
    );
  }
}

/** They must lead to the lowest proven cut; otherwise the peer has another chain. */
function provenBackOf(
  peer: PeerName,
  { lowest, checkpoint }: Pick<Way, 'lowest' | 'checkpoint'>,
  headers: readonly Bytes[],
): readonly Place[] {
  const places = provenBack(lowest, headers);
  if (typeof places !== 'string') return places;
  const reason = lowest === checkpoint ? `its cut ${lowest.height} contradicts the checkpoint` : places;
  throw new PeerFault(peer, 'false_proof', reason);
}
