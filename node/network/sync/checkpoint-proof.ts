/**
 * Reads headers back from the next checkpoint. A chain signed with stolen keys looks valid until the checkpoint's
 * height, when a node would already have executed it. So before anything below a checkpoint is executed, the headers
 * are read back from it to the own head, from any peers: the chain of hashes proves them. Every 96th identifier is
 * kept, 1 MB for three million cuts.
 */
import { type Bytes, equalBytes } from '../../../protocol/bytes.ts';
import { decodeCutHeader } from '../../../protocol/ledger/cut.ts';
import type { LogFields, Logger } from '../../../runtime/log/log.ts';
import { type Checkpoint, nextCheckpoint } from '../../chain/checkpoints.ts';
import type { CutLedger } from '../../chain/cut-ledger.ts';
import { PeerFault, StingyAnswer } from '../peers/peer-fault.ts';
import type { PeerName } from '../thread/host-types.ts';
import { type Place, provenBack, UnprovenError } from './cut-proof.ts';
import type { AskHeaders } from './epoch-proof.ts';
import { batchEnd, decodeHeadersAnswer, MAX_CUTS, MAX_HEADERS } from './sync-messages.ts';

const LOG_MILLIS = 10_000;

export type CheckpointProofDependencies = {
  readonly ledger: Pick<CutLedger, 'head'>;
  readonly checkpoints: readonly Checkpoint[];
  readonly ask: AskHeaders;
  readonly log: Logger;
  steady(): number;
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

  constructor(dependencies: CheckpointProofDependencies) {
    this.#with = dependencies;
  }

  /**
   * Reads back from the next checkpoint to the own head, before the cuts from this height on are used. Rejects with a
   * ContradictedError if the own chain is another.
   */
  async lead(peer: PeerName, from: number): Promise<void> {
    const { ledger, checkpoints } = this.#with;
    const checkpoint = nextCheckpoint(checkpoints, from);
    if (checkpoint === undefined) return;
    if (this.#way?.checkpoint !== checkpoint)
      this.#way = { checkpoint, marks: new Map([[checkpoint.height, checkpoint.cutId]]), lowest: checkpoint };
    this.#walking ??= this.#walk(peer, this.#way, from).finally(() => {
      this.#walking = undefined;
    });
    const { lowest } = await this.#walking;
    const head = ledger.head();
    if (lowest.height === head.height && !equalBytes(lowest.cutId, head.cutId))
      throw new ContradictedError(
        `cut ${head.height} of this data directory does not lead to the checkpoint of cut ${checkpoint.height}: compare the checkpoint with nodes that you trust; if it is right, sync into a new data directory`,
      );
  }

  /**
   * Compares cuts that follow the own head: true if the checkpoint proves all of them, false if there is none, or they
   * go beyond it. Rejects with a PeerFault if they differ.
   */
  async proves(peer: PeerName, cuts: readonly Place[]): Promise<boolean> {
    const first = (cuts[0] as Place).height;
    const last = cuts.at(-1) as Place;
    const way = this.#way;
    if (way === undefined || way.checkpoint.height < first) return false;
    const { height } = way.checkpoint;
    const compared = last.height <= height ? last : (cuts[height - first] as Place);
    if (!equalBytes(await this.#idOf(peer, way, compared.height), compared.cutId))
      throw new PeerFault(
        peer,
        'false_proof',
        `its cut ${compared.height} contradicts the checkpoint of cut ${height}`,
      );
    return compared === last;
  }

  /** Down to the cut before `from`. Proven headers are kept if a peer fails. */
  async #walk(first: PeerName, way: Way, from: number): Promise<Way> {
    let asked = first;
    while (way.lowest.height >= from) {
      const { lowest, checkpoint } = way;
      const count = Math.min(MAX_HEADERS, lowest.height - from + 1);
      const sender = await this.#headers(asked, { lowest, checkpoint }, count, (peer, headers, places) => {
        for (const place of places) if (isMark(place.height)) way.marks.set(place.height, place.cutId);
        const { height, previousId } = decodeCutHeader(headers[0] as Bytes);
        if (height <= way.lowest.height) way.lowest = { height: height - 1, cutId: previousId };
        // One header at a time, the way would take days: what came is kept, and another peer is asked.
        if (places.length < count) throw new StingyAnswer(peer, `${headers.length} of ${count} headers`);
        return peer;
      });
      asked = sender;
      if (way.lowest.height >= from)
        this.#tell('info', 'headers are read back from a checkpoint', { at: way.lowest.height, to: from }, way);
    }
    return way;
  }

  /** Rejects if nobody has them. */
  async #headers<T>(
    first: PeerName,
    back: Pick<Way, 'lowest' | 'checkpoint'>,
    count: number,
    use: (peer: PeerName, headers: readonly Bytes[], places: readonly Place[]) => T,
  ): Promise<T> {
    const to = back.lowest.height;
    const found = await this.#with.ask(first, { type: 'headers', to, count }, (peer, answer) => {
      const { headers } = decodeHeadersAnswer(answer);
      if (headers.length === 0) {
        // It may still be syncing.
        this.#tell('warn', 'a peer does not have the cut of a checkpoint', { peer, height: to }, back);
        throw new StingyAnswer(peer, `no header ${to}`);
      }
      if (headers.length > count) throw new PeerFault(peer, 'malformed', 'more headers than were asked for');
      return use(peer, headers, provenBackOf(peer, back, headers));
    });
    if (found === undefined) throw new UnprovenError(`nobody has the headers up to cut ${to}`);
    return found;
  }

  #tell(level: 'info' | 'warn', message: string, fields: LogFields, { checkpoint }: Pick<Way, 'checkpoint'>): void {
    const { log, steady } = this.#with;
    if (steady() - this.#loggedAt < LOG_MILLIS) return;
    this.#loggedAt = steady();
    log[level](message, { checkpoint: checkpoint.height, ...fields });
  }

  async #idOf(asked: PeerName, way: Way, height: number): Promise<Bytes> {
    const known = way.marks.get(height);
    if (known !== undefined) return known;
    const mark = Math.min(batchEnd(height), way.checkpoint.height);
    const between = { checkpoint: way.checkpoint, lowest: { height: mark, cutId: way.marks.get(mark) as Bytes } };
    const count = mark - height + 1;
    return await this.#headers(asked, between, count, (peer, headers, places) => {
      if (places.length < count) throw new StingyAnswer(peer, `${headers.length} of ${count} headers`);
      return (places[0] as Place).cutId;
    });
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
