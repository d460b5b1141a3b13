/** Logins that wait for the main thread: for a session to resume, or for the sink to register the miner. */
import type { Hub, Member } from '../threads/hub.ts';
import type { Conversation } from './conversation.ts';
import type { HeldSessions } from './held-sessions.ts';

export type LoginsDependencies = {
  readonly hub: Pick<Hub, 'resume' | 'ended' | 'own'>;
  readonly sessions: HeldSessions;
  readonly soon: (run: () => void) => void;
  readonly log: (level: 'warn', message: string, fields: Readonly<Record<string, unknown>>) => void;
  /** An error in `run` ends this conversation only. */
  readonly over: (conversation: Conversation, run: () => void) => void;
};

export class Logins {
  readonly #thread: number;
  readonly #dependencies: LoginsDependencies;
  #owning: { readonly conversation: Conversation; readonly member: Member }[] = [];

  constructor(thread: number, dependencies: LoginsDependencies) {
    this.#thread = thread;
    this.#dependencies = dependencies;
  }

  resume(conversation: Conversation, id: string): void {
    const { hub, sessions, over } = this.#dependencies;
    void hub
      .resume(id, this.#thread)
      .catch(() => null)
      .then((record) => {
        if (conversation.isEnding) {
          if (record !== null) hub.ended(record);
          return;
        }
        over(conversation, () => {
          const { session } = conversation;
          session.resumed(record);
          // A banned session, or one of another service, is not resumed here and stays where it was.
          if (record !== null && session.id !== record.id) hub.ended(record);
          // From here on it can be shelved or taken over like a mining session, though it has yet to authorize.
          else if (record !== null) sessions.hold(conversation);
          conversation.proceed();
        });
      });
  }

  /** Requests of one turn of the event loop are sent together. */
  own(conversation: Conversation, member: Member): void {
    this.#owning.push({ conversation, member });
    if (this.#owning.length === 1) this.#dependencies.soon(() => void this.#ownAll());
  }

  async #ownAll(): Promise<void> {
    const { hub, sessions, log, over } = this.#dependencies;
    const owning = this.#owning;
    this.#owning = [];
    let refusals: readonly (string | undefined)[] | undefined;
    try {
      refusals = await hub.own(owning.map(({ member }) => member));
    } catch (error) {
      log('warn', 'logins are put off: the sink cannot keep what they find', { error });
    }
    for (const [i, { conversation }] of owning.entries()) {
      const { session } = conversation;
      if (conversation.isEnding) {
        sessions.left(session);
        continue;
      }
      over(conversation, () => {
        if (refusals === undefined || refusals[i] !== undefined) session.notOwned(refusals?.[i]);
        else session.owned();
        conversation.proceed();
      });
    }
  }
}
