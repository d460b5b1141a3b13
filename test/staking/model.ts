/**
 * Staking a second time, written from the rules alone (ledger rules 60 to 69) with plain maps and lists: no tries, no lazy snapshots, no cursors. What every
 * position held at the start of every epoch is simply written down, and payments are worked out in one go. Names are hex.
 */
import type { StakingOperation } from '../../protocol/staking/operation.ts';

const COIN = 100_000_000n;
const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString('hex');

/** Keys of the rig differ in their first bytes. */
export const shortKey = (key: Uint8Array): string => hex(key.subarray(0, 48));

export type ModelValidator = {
  id: string;
  owner: string;
  /** From the epoch on, in order. */
  keys: { from: number; key: string }[];
  endpoints: { from: number; endpoint: string }[];
  commissions: { from: number; rate: number }[];
  registered: number;
  genesis: boolean;
  heartbeat: number;
  noSeat: Set<number>;
  exit?: number;
  slash?: number;
};

export type ModelPosition = {
  id: string;
  kind: 'self_bond' | 'delegation';
  validator: string;
  owner: string;
  reward: string;
  principal: bigint;
  unbonded?: number;
  /** What counted at the starts of epochs. */
  starts: Map<number, bigint>;
};

export type ModelMember = { validator: string; weight: bigint; earning: bigint; rate: number; key: string };
export type Payment = { position: string; address: string; amount: bigint; interval: number };
type Due = { interval: number; validator: string; position: string; amount: bigint };

const last = <T extends { from: number }>(list: T[], epoch: number): T | undefined =>
  list.filter(({ from }) => from <= epoch).at(-1);
const pending = <T extends { from: number }>(list: T[], epoch: number): boolean =>
  list.some(({ from }) => from > epoch);

export class Model {
  height = 0;
  bonded = 0n;
  unbonding = 0n;
  burned = 0n;
  pool = 0n;
  readonly validators = new Map<string, ModelValidator>();
  readonly positions = new Map<string, ModelPosition>();
  readonly usedKeys = new Set<string>();
  committee: ModelMember[] = [];
  #windows: Set<number>[] = [];
  /** Payments of the last interval that were not made yet, and what is left for the pool after them. */
  #due: Due[] = [];
  readonly #interval: number;

  constructor(interval: number) {
    this.#interval = interval;
  }

  epochOf(height: number): number {
    return Math.floor(height / this.#interval);
  }

  isActive(validator: ModelValidator): boolean {
    return validator.exit === undefined && validator.slash === undefined;
  }

  isBonded(position: ModelPosition): boolean {
    const validator = this.validators.get(position.validator) as ModelValidator;
    return position.unbonded === undefined && this.isActive(validator);
  }

  release(position: ModelPosition): number {
    const { exit, slash } = this.validators.get(position.validator) as ModelValidator;
    const since = position.unbonded ?? exit ?? slash;
    return since === undefined ? Number.POSITIVE_INFINITY : since + 10 * this.#interval;
  }

  stakeOf(validator: string): bigint {
    let stake = 0n;
    for (const position of this.positions.values())
      if (position.validator === validator && this.isBonded(position)) stake += position.principal;
    return stake;
  }

  genesis(validators: { id: string; key: string; owner: string; reward: string; amount: bigint; rate: number }[]) {
    for (const { id, key, owner, reward, amount, rate } of validators) {
      this.#register(id, key, owner, 'genesis', rate, 0, true);
      this.#open(`self ${id}`, 'self_bond', id, owner, reward, amount);
    }
    this.#fixCommittee(0);
  }

  /** The self-bond's position is called `self ID` here. */
  #open(id: string, kind: ModelPosition['kind'], validator: string, owner: string, reward: string, amount: bigint) {
    this.positions.set(id, { id, kind, validator, owner, reward, principal: amount, starts: new Map() });
    this.bonded += amount;
  }

  #register(id: string, key: string, owner: string, endpoint: string, rate: number, epoch: number, genesis: boolean) {
    this.usedKeys.add(key);
    this.validators.set(id, {
      id,
      owner,
      keys: [{ from: epoch, key }],
      endpoints: [{ from: epoch, endpoint }],
      commissions: [{ from: epoch, rate }],
      registered: epoch,
      genesis,
      heartbeat: epoch,
      noSeat: new Set(),
    });
  }

  #isEligible(validator: ModelValidator, epoch: number): boolean {
    return (
      this.isActive(validator) &&
      (validator.genesis || validator.registered <= epoch - 2) &&
      validator.heartbeat >= epoch - 2 &&
      !validator.noSeat.has(epoch)
    );
  }

  /** By the state as it is now; everybody's principal is written down at the same instant. */
  #fixCommittee(epoch: number) {
    for (const position of this.positions.values())
      if (this.isBonded(position)) position.starts.set(epoch, position.principal);
    const member = (validator: ModelValidator, weight: bigint): ModelMember => ({
      validator: validator.id,
      weight,
      earning: this.stakeOf(validator.id),
      rate: last(validator.commissions, epoch)?.rate as number,
      key: last(validator.keys, epoch)?.key as string,
    });
    const eligible = [...this.validators.values()].filter((validator) => this.#isEligible(validator, epoch));
    const ranked = eligible.map((validator) => member(validator, this.stakeOf(validator.id)));
    ranked.sort((a, b) => (a.weight > b.weight ? -1 : a.weight < b.weight ? 1 : a.validator < b.validator ? -1 : 1));
    if (ranked.length > 0) this.committee = ranked.slice(0, 64);
    else {
      const stay = this.committee.map((old) => member(this.#validator(old.validator), old.weight));
      const sound = stay.filter(({ validator }) => this.#validator(validator).slash === undefined);
      this.committee = sound.length > 0 ? sound : stay;
    }
    this.#windows = this.committee.map(() => new Set());
  }

  #validator(id: string): ModelValidator {
    return this.validators.get(id) as ModelValidator;
  }

  /** What follows the operations of a cut. Returns the payments. */
  finish(stakeHalf: bigint, signers: bigint): Payment[] {
    const { height } = this;
    const k = height % this.#interval;
    const payments = this.#due.map(({ position: id, amount, interval }) => {
      const position = this.positions.get(id) as ModelPosition;
      return { position: id, address: position.reward, amount, interval };
    });
    // On intervals this short a cut can pay everybody: 92,160 positions.
    this.#due = [];
    for (const [id, position] of this.positions)
      if (position.kind === 'self_bond' && position.principal === 0n) this.positions.delete(id);
    this.pool += stakeHalf + this.#left;
    this.#left = 0n;
    if (k !== 0)
      this.committee.forEach((_, i) => {
        if ((signers >> BigInt(i)) & 1n) this.#windows[i]?.add(Math.floor(k / (this.#interval / 12)));
      });
    if (k === this.#interval - 1) this.#endEpoch(this.epochOf(height));
    return payments;
  }

  /** What the payments of the interval leave over; it joins the pool with the cut that makes them. */
  #left = 0n;

  #endEpoch(epoch: number) {
    const present = this.committee.map((_, i) => (this.#windows[i] as Set<number>).size >= 9);
    this.committee.forEach(({ validator }, i) => {
      if (!present[i]) for (const next of [1, 2]) this.#validator(validator).noSeat.add(epoch + next);
    });
    const earners = this.committee.filter(
      ({ validator, earning }, i) => present[i] && this.#validator(validator).slash === undefined && earning > 0n,
    );
    let total = 0n;
    for (const { earning } of earners) total += earning;
    if (total > 0n) {
      const pool = this.pool;
      let left = pool;
      for (const { validator, rate } of earners) {
        let commission = 0n;
        const own = [...this.positions.values()].filter((position) => position.validator === validator);
        const delegations = own.filter(({ kind }) => kind === 'delegation').sort((a, b) => (a.id < b.id ? -1 : 1));
        const share = ({ starts }: ModelPosition): bigint => (pool * (starts.get(epoch) ?? 0n)) / total;
        const give = (position: string, amount: bigint) => {
          if (amount > 0n) this.#due.push({ interval: epoch, validator, position, amount });
          left -= amount;
        };
        for (const delegation of delegations) {
          const cut = (share(delegation) * BigInt(rate)) / 10_000n;
          commission += cut;
          give(delegation.id, share(delegation) - cut);
        }
        const self = own.find(({ kind }) => kind === 'self_bond');
        if (self !== undefined) give(self.id, share(self) + commission);
      }
      this.#left = left;
      this.pool = 0n;
    }
    this.#fixCommittee(epoch + 1);
  }

  /** The code of the refusal, or what it withdrew. `id` is the transaction's, `made` the position that it would make. */
  operate(
    operation: StakingOperation,
    made: string,
  ): { refused: string } | { withdrawn?: { to: string; amount: bigint } } {
    const { height } = this;
    const epoch = this.epochOf(height);
    const no = (refused: string) => ({ refused });
    if (operation.name === 'register') {
      const key = shortKey(operation.consensusKey);
      if (this.usedKeys.has(key)) return no('consensus_key_used');
      this.#register(made, key, hex(operation.owner), hex(operation.endpoint), operation.commission, epoch, false);
      const [owner, reward] = [hex(operation.owner), hex(operation.rewardAddress)];
      this.#open(`self ${made}`, 'self_bond', made, owner, reward, operation.amount);
      return {};
    }
    if ('position' in operation) return this.#onPosition(operation, made);
    const validator = this.validators.get(hex(operation.validator));
    if (validator === undefined) return no('validator_unknown');
    if (operation.name === 'evidence') return this.#evidence(operation.votes[0].vote.height, validator);
    if (!this.isActive(validator)) return no('validator_inactive');
    switch (operation.name) {
      case 'bond':
        this.#open(
          made,
          'delegation',
          validator.id,
          hex(operation.owner),
          hex(operation.rewardAddress),
          operation.amount,
        );
        return {};
      case 'heartbeat':
        if (operation.epoch !== epoch) return no('heartbeat_epoch');
        if (validator.heartbeat === epoch) return no('heartbeat_repeated');
        validator.heartbeat = epoch;
        return {};
      case 'rotate':
        if (this.usedKeys.has(shortKey(operation.consensusKey))) return no('consensus_key_used');
        if (pending(validator.keys, epoch)) return no('change_pending');
        // Its endpoint takes the place of one that is announced.
        if (pending(validator.endpoints, epoch)) validator.endpoints.pop();
        this.usedKeys.add(shortKey(operation.consensusKey));
        validator.keys.push({ from: epoch + 2, key: shortKey(operation.consensusKey) });
        validator.endpoints.push({ from: epoch + 2, endpoint: hex(operation.endpoint) });
        return {};
      case 'endpoint':
        if (pending(validator.endpoints, epoch)) return no('change_pending');
        validator.endpoints.push({ from: epoch + 2, endpoint: hex(operation.endpoint) });
        return {};
      case 'commission':
        if (pending(validator.commissions, epoch)) return no('change_pending');
        validator.commissions.push({ from: epoch + 14, rate: operation.commission });
        return {};
      case 'exit': {
        const stake = this.stakeOf(validator.id);
        validator.exit = height;
        this.bonded -= stake;
        this.unbonding += stake;
        return {};
      }
    }
  }

  #onPosition(operation: Extract<StakingOperation, { position: Uint8Array }>, made: string) {
    const no = (refused: string) => ({ refused });
    const position = this.positions.get(this.nameOfPosition(hex(operation.position)));
    if (position === undefined) return no('position_unknown');
    switch (operation.name) {
      case 'reward_address':
        position.reward = hex(operation.address);
        return {};
      case 'withdraw': {
        if (this.isBonded(position)) return no('position_bonded');
        if (position.principal === 0n) return no('position_empty');
        // Delegations are visited at the end of the cut; one that was not visited yet cannot be withdrawn.
        const isVisited = position.kind === 'self_bond' || this.#validator(position.validator).slash !== this.height;
        if (this.height < this.release(position) || !isVisited) return no('position_locked');
        this.positions.delete(position.id);
        this.unbonding -= position.principal;
        return { withdrawn: { to: position.owner, amount: position.principal } };
      }
      case 'unbond': {
        if (position.kind === 'self_bond') return no('position_self_bond');
        if (!this.isBonded(position)) return no('position_unbonding');
        const amount = operation.amount === 0n ? position.principal : operation.amount;
        if (operation.amount === 0n) position.unbonded = this.height;
        else {
          if (position.principal - amount < 100n * COIN) return no('unbond_amount');
          position.principal -= amount;
          const part = { ...position, id: made, principal: amount, unbonded: this.height, starts: new Map() };
          this.positions.set(made, part);
        }
        this.bonded -= amount;
        this.unbonding += amount;
        return {};
      }
    }
  }

  /** Real identifiers of self-bonds, as the ledger names them. */
  readonly selfBonds = new Map<string, string>();
  nameOfPosition(id: string): string {
    return this.selfBonds.get(id) ?? id;
  }

  #evidence(voteHeight: number, validator: ModelValidator) {
    const no = (refused: string) => ({ refused });
    if (validator.slash !== undefined) return no('validator_slashed');
    if (voteHeight > this.height) return no('evidence_early');
    if (this.height > voteHeight + 10 * this.#interval) return no('evidence_expired');
    if (last(validator.keys, this.epochOf(voteHeight)) === undefined) return no('evidence_key_unknown');
    const slashable = [...this.positions.values()].filter(
      (position) => position.validator === validator.id && this.release(position) > this.height,
    );
    const stake = this.stakeOf(validator.id);
    this.bonded -= stake;
    this.unbonding += stake;
    validator.slash = this.height;
    for (const position of slashable) {
      const burned = position.kind === 'self_bond' ? position.principal : position.principal / 10n;
      position.principal -= burned;
      this.unbonding -= burned;
      this.burned += burned;
      // An empty position stays for as long as it has a payment coming.
      if (position.principal === 0n && !this.#due.some(({ validator: paid }) => paid === validator.id))
        this.positions.delete(position.id);
    }
    return {};
  }
}
