/**
 * The members of a listener thread that the main thread has handles for. Each is announced right before its first share, on
 * the same port: a login without shares costs no message and no memory in the main thread.
 */
import type { JudgedShare, Member, MemberBook } from './hub.ts';

/** The part of the hub that members are announced to. */
export interface MemberList {
  introduce(members: readonly Member[]): void;
  left(handles: readonly number[]): void;
}

export class IntroducedMembers implements MemberBook {
  readonly #main: MemberList;
  readonly #known = new Set<Member>();

  constructor(main: MemberList) {
    this.#main = main;
  }

  /** Called before these shares are sent. */
  introduce(shares: readonly JudgedShare[]): void {
    const strangers: Member[] = [];
    for (const { member } of shares) {
      if (this.#known.has(member)) continue;
      this.#known.add(member);
      strangers.push(member);
    }
    if (strangers.length > 0) this.#main.introduce(strangers);
  }

  left(members: readonly Member[]): void {
    const known = members.filter((member) => this.#known.delete(member));
    if (known.length > 0) this.#main.left(known.map(({ handle }) => handle));
  }
}
