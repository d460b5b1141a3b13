/**
 * A whole committee on one thread with real signatures and real message bytes, every message delivered at once: what a cut costs a member in processor time and bytes. Disk, ledger and sockets are not in it.
 */

import { examine } from '../../node/consensus/driver/examine.ts';
import { decodeMessage, encodeMessage } from '../../node/consensus/driver/messages.ts';
import { signatureCheck, signedText } from '../../node/consensus/driver/signatures.ts';
import { Committee } from '../../node/consensus/engine/committee.ts';
import type { Effect, Event, Proposal } from '../../node/consensus/engine/effects.ts';
import { step } from '../../node/consensus/engine/engine.ts';
import { type ConsensusState, createState } from '../../node/consensus/engine/state.ts';
import { bitsOf } from '../../node/consensus/engine/votes.ts';
import { encodeRecord } from '../../node/consensus/log/log-record.ts';
import { type DevelopmentKey, developmentKey, validatorName } from '../../node/genesis/development.ts';
import { nameOf } from '../../node/ledger/registration.ts';
import { signMessage } from '../../node/ml-dsa.ts';
import type { Bytes } from '../../protocol/bytes.ts';
import { blocksRoot, cutId, encodeCutHeader } from '../../protocol/ledger/cut.ts';

const CHAIN = new Uint8Array(48).fill(1);
const ZERO = new Uint8Array(48);
const UNSIGNED = new Uint8Array(0);

class SignedMember {
  readonly state: ConsensusState;
  readonly inbox: Bytes[] = [];
  receivedBytes = 0;
  writtenBytes = 0;
  readonly #key: DevelopmentKey;
  readonly #check = signatureCheck(CHAIN);
  readonly #sendAll: (bytes: Bytes) => void;

  constructor(number: number, committee: Committee, sendAll: (bytes: Bytes) => void) {
    this.#key = developmentKey(validatorName(number));
    this.#sendAll = sendAll;
    this.state = createState(1, committee, number);
  }

  feed(event: Event): void {
    for (const effect of step(this.state, event)) this.#carryOut(effect);
  }

  receive(bytes: Bytes): void {
    this.receivedBytes += bytes.length;
    const message = decodeMessage(bytes);
    if (
      message.type === 'have' ||
      examine(
        this.state,
        message,
        this.#check,
        () => true,
        () => true,
      ) !== 'take'
    )
      return;
    if (message.type === 'vote') this.feed(message);
    else if (message.type === 'proposal') this.feed({ ...message, timely: true });
  }

  #carryOut(effect: Effect): void {
    if (effect.do === 'build') this.feed({ type: 'built', proposal: this.#proposal(effect) });
    else if (effect.do === 'check') {
      const { height, cut } = effect.proposal;
      this.feed({ type: 'checked', height, cut, valid: true });
    } else if (effect.do === 'sign') {
      const { message } = effect;
      this.feed({ type: 'signed', message, signature: signMessage(this.#key.privateKey, signedText(CHAIN, message)) });
    } else if (effect.do === 'write') this.writtenBytes += encodeRecord(effect.record).length;
    else if (effect.do === 'send' && effect.to === 'all') this.#sendAll(encodeMessage(effect.message));
  }

  #proposal({ height, round, last }: Effect & { do: 'build' }): Proposal {
    const signers = last === undefined ? 0n : bitsOf(last.votes);
    const content = encodeCutHeader({
      networkId: 3,
      height,
      timestampMillis: height,
      previousId: ZERO,
      blocksRoot: blocksRoot([]),
      stateRoot: ZERO,
      validatorSetId: ZERO,
      blockCount: 0,
      signers,
    });
    const cut = nameOf(cutId(content));
    const lastRound = last?.round ?? 0;
    return { height, round, validRound: -1, cut, signers, lastRound, content, signature: UNSIGNED };
  }
}

export type CommitteeCost = {
  /** Of one member, for one cut. */
  readonly cpuMillis: number;
  readonly receivedBytes: number;
  readonly writtenBytes: number;
  /** From the first proposal until all have decided, everything on one core. */
  readonly wallMillis: number;
};

export function committeeCost(size: number, cuts: number): CommitteeCost {
  const members: SignedMember[] = [];
  const committee = new Committee(
    ZERO,
    Array.from({ length: size }, (_, i) => ({ publicKey: developmentKey(validatorName(i)).publicKey, stake: 10n })),
  );
  for (let number = 0; number < size; number++)
    members.push(
      new SignedMember(number, committee, (bytes) => {
        for (const [other, member] of members.entries()) if (other !== number) member.inbox.push(bytes);
      }),
    );
  const decideOne = (height: number) => {
    for (const [self, member] of members.entries())
      if (height > 1) member.feed({ type: 'height', height, committee, self });
    for (const member of members) member.feed({ type: 'begin' });
    while (members.some(({ inbox }) => inbox.length > 0))
      for (const member of members) for (const bytes of member.inbox.splice(0)) member.receive(bytes);
    if (members.some(({ state }) => state.step !== 'decided')) throw new Error(`cut ${height} was not decided`);
  };
  // Keys are read, and code is compiled, with the first.
  decideOne(1);
  for (const member of members) Object.assign(member, { receivedBytes: 0, writtenBytes: 0 });
  const [wall, cpu] = [performance.now(), process.cpuUsage()];
  for (let height = 2; height <= cuts + 1; height++) decideOne(height);
  const { user, system } = process.cpuUsage(cpu);
  const [one] = members as [SignedMember];
  return {
    cpuMillis: (user + system) / 1_000 / cuts / size,
    receivedBytes: one.receivedBytes / cuts,
    writtenBytes: one.writtenBytes / cuts,
    wallMillis: (performance.now() - wall) / cuts,
  };
}
