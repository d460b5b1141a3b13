/**
 * The sessions of a listener by id, and how each leaves it: to the shelf of ended sessions, or to another connection
 * that resumes it. A session is handed over only once, and its member stays known until its last submit has a verdict.
 */
import type { MonotonicClock } from '../../runtime/clock/clock.ts';
import type { Session } from '../session/session.ts';
import type { SessionRecord } from '../session/session-record.ts';
import type { Hub, MemberBook } from '../threads/hub.ts';
import type { Conversation } from './conversation.ts';

/** How long handing over a session waits for the verdicts of its submits. */
const EXPORT_WAIT_MILLIS = 2_000;

export type HeldSessionsDependencies = {
  readonly hub: Pick<Hub, 'ended'>;
  readonly members: MemberBook | undefined;
  readonly now: MonotonicClock;
  /** Whether ended sessions can be resumed. */
  readonly areKept: boolean;
};

export class HeldSessions {
  readonly #dependencies: HeldSessionsDependencies;
  /** Sessions that mine or were resumed, or ended with submits still being verified. */
  readonly #byId = new Map<string, Conversation>();
  readonly #retiring = new Set<Conversation>();
  /** Sessions that were handed over before all their submits were verified. */
  readonly #leaving = new Set<Session>();

  constructor(dependencies: HeldSessionsDependencies) {
    this.#dependencies = dependencies;
  }

  hold(conversation: Conversation): void {
    this.#byId.set(conversation.session.id, conversation);
  }

  left({ members }: Session): void {
    this.#dependencies.members?.left(members);
  }

  has({ id }: Session): boolean {
    return this.#byId.has(id);
  }

  /** Its connection is gone: it can be resumed once its submits have their verdicts. */
  retire(conversation: Conversation): void {
    if (conversation.session.pending > 0) this.#retiring.add(conversation);
    else this.#handOver(conversation.session);
  }

  #handOver(session: Session): void {
    if (!this.#byId.delete(session.id)) return;
    const record = session.record();
    this.left(session);
    if (record !== null && this.#dependencies.areKept) this.#dependencies.hub.ended(record);
  }

  /**
   * Takes the conversation of a session that is being resumed. From here on it is neither resumed twice nor shelved.
   */
  take(id: string): Conversation | undefined {
    const conversation = this.#byId.get(id);
    if (conversation === undefined) return undefined;
    this.#byId.delete(id);
    this.#retiring.delete(conversation);
    return conversation;
  }

  /** After `take`, when its connection is closed. */
  async giveAway(session: Session): Promise<SessionRecord | null> {
    const { now } = this.#dependencies;
    const until = now() + EXPORT_WAIT_MILLIS;
    while (session.pending > 0 && now() < until) await new Promise((resolve) => setTimeout(resolve, 5));
    const record = session.record();
    if (session.pending === 0) {
      this.left(session);
      return record;
    }
    // A share of a member that was removed would fail its whole batch.
    this.#leaving.add(session);
    // Whether its last shares are taken is not known: as duplicates they could be lost, as fresh ones count twice.
    return record === null ? null : withDeadJobs(record);
  }

  /** At every tick: shelves the sessions whose last verdict has arrived. */
  settle(): void {
    for (const conversation of this.#retiring)
      if (conversation.session.pending === 0) {
        this.#retiring.delete(conversation);
        this.#handOver(conversation.session);
      }
    for (const session of this.#leaving)
      if (session.pending === 0) {
        this.#leaving.delete(session);
        this.left(session);
      }
  }
}

/** As after a restart, the next job has a fresh body; and no job is known by its id. No id and no header comes again. */
function withDeadJobs(record: SessionRecord): SessionRecord {
  if (record.jobs === null) return record;
  const { log } = record.jobs;
  const terms = log.terms.map((each) => ({ ...each, owner: each.owner ?? record.owner }));
  return { ...record, jobs: { ...record.jobs, spare: null, log: { ...log, terms, runs: [] } } };
}
