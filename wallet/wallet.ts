/**
 * An open wallet: assembles its parts and runs their loop. It runs inside the daemon, a command or a test, which holds
 * the lock of its state directory.
 */
import { formatCoins } from '../protocol/amount.ts';
import type { NetworkName } from '../protocol/network.ts';
import type { SteadyClock, WallClock } from '../runtime/clock/clock.ts';
import type { Logger } from '../runtime/log/log.ts';
import type { CutEffects } from './chain/cut-effects.ts';
import { Follower } from './chain/follower.ts';
import { Incoming } from './chain/incoming.ts';
import type { NodeClient } from './chain/node-link.ts';
import { OwnSpends } from './chain/own-spends.ts';
import { StakingWatch } from './chain/staking-watch.ts';
import { EventHub } from './event-hub.ts';
import { WalletRoot } from './keys/derivation.ts';
import { Keyring } from './keys/keyring.ts';
import { phraseOfEntropy } from './keys/phrase.ts';
import type { WalletSecrets } from './keys/wallet-file.ts';
import { ChatKeys } from './messenger/chat-keys.ts';
import { Messenger } from './messenger/messenger.ts';
import { Multisig } from './multisig/multisig.ts';
import { MultisigWatch } from './multisig/watch.ts';
import { Automation, type AutomationOptions } from './payments/automation.ts';
import { Outgoing, type OutgoingOptions } from './payments/outgoing.ts';
import { Staking } from './payments/staking.ts';
import { Submitter } from './payments/submitter.ts';
import { outgoingDocument, paymentsOf, stateOf } from './rpc/documents.ts';
import { Book } from './state/book.ts';
import { Journal } from './state/journal.ts';
import { WalletStore } from './state/store.ts';
import { WalletError } from './wallet-error.ts';

export const WALLET_DEFAULTS = {
  validityCuts: 1_000,
  maxFeePerMass: 100n,
  answerMillis: 10_000,
  pollMillis: 500,
  confirmations: 1,
} as const;

export type WalletOptions = AutomationOptions &
  Partial<OutgoingOptions> & {
    readonly network: NetworkName;
    readonly stateDirectory: string;
    /** Cuts until the `confirmations` event. */
    readonly confirmations?: number;
    readonly pollMillis?: number;
  };

export type WalletDependencies = {
  readonly client: NodeClient;
  readonly log: Logger;
  readonly now: WallClock;
  /** The same by a monotonic clock, for waits and allowances; `now` without it. */
  readonly steady?: SteadyClock;
  readonly randomBytes: (length: number) => Uint8Array;
  /** The state can no longer be written: the program must end. */
  readonly fault: (error: Error) => void;
};

export class Wallet {
  readonly network: NetworkName;
  readonly confirmations: number;
  /** Cuts that a transaction of this wallet stays valid. */
  readonly validityCuts: number;
  readonly book: Book;
  readonly store: WalletStore;
  readonly journal: Journal;
  readonly keyring: Keyring;
  readonly events = new EventHub();
  readonly follower: Follower;
  readonly ownSpends: OwnSpends;
  readonly outgoing: Outgoing;
  readonly staking: Staking;
  readonly incoming: Incoming;
  readonly multisig: Multisig;
  readonly messenger: Messenger;
  readonly log: Logger;
  readonly now: WallClock;
  readonly steady: SteadyClock;
  readonly randomBytes: (length: number) => Uint8Array;
  readonly #submitter: Submitter;
  readonly #chatKeys: ChatKeys;
  readonly #automation: Automation;
  readonly #stakingWatch: StakingWatch;
  readonly #multisigWatch: MultisigWatch;
  readonly #pollMillis: number;
  #confirmedThrough: number;
  readonly #closed: (() => void)[] = [];
  #stopped = false;
  #wake: (() => void) | undefined;
  #loop: Promise<void> | undefined;

  static async open(secrets: WalletSecrets, options: WalletOptions, dependencies: WalletDependencies): Promise<Wallet> {
    const store = await WalletStore.open(options.stateDirectory);
    try {
      let meta = await store.meta();
      if (meta === undefined) {
        meta = WalletStore.firstMeta(options.network);
        await store.write([{ meta }], true);
      }
      if (meta.network !== options.network)
        throw new WalletError(
          'state_damaged',
          `the state belongs to ${meta.network}, the wallet to ${options.network}`,
        );
      if (meta.rescan === 'forgetting') meta = await store.forgetChain(meta);
      const book = new Book(meta, await store.requestIds());
      book.apply({
        addresses: await store.addresses(),
        outputsAdded: await store.outputs(),
        outgoing: await store.openOutgoing(),
        multisig: await store.multisig(),
        chats: await store.chats(),
      });
      const root = new WalletRoot(phraseOfEntropy(secrets.entropy), secrets.passphrase, options.network);
      const wallet = new Wallet(
        store,
        book,
        { keyring: new Keyring(root), chatKeys: new ChatKeys(root) },
        options,
        dependencies,
      );
      wallet.#checkOwner();
      await wallet.follower.extendAddresses();
      await wallet.outgoing.resume();
      return wallet;
    } catch (error) {
      await store.close();
      throw error;
    }
  }

  private constructor(
    store: WalletStore,
    book: Book,
    { keyring, chatKeys }: { readonly keyring: Keyring; readonly chatKeys: ChatKeys },
    options: WalletOptions,
    dependencies: WalletDependencies,
  ) {
    const { client, log, now, fault } = dependencies;
    this.steady = dependencies.steady ?? ((): number => now());
    const settings = { ...WALLET_DEFAULTS, ...options };
    this.network = options.network;
    this.confirmations = settings.confirmations;
    this.validityCuts = settings.validityCuts;
    this.#pollMillis = settings.pollMillis;
    this.log = log;
    this.now = now;
    this.randomBytes = dependencies.randomBytes;
    this.store = store;
    this.book = book;
    this.keyring = keyring;
    this.journal = new Journal({ book, store, fault });
    this.#confirmedThrough = book.meta.indexedHeight - this.confirmations + 1;
    this.#chatKeys = chatKeys;
    this.messenger = new Messenger({
      book,
      store,
      keys: chatKeys,
      network: options.network,
      randomBytes: this.randomBytes,
      now,
    });
    this.ownSpends = new OwnSpends({ client, book, journal: this.journal, store });
    this.follower = new Follower(options.network, {
      client,
      book,
      store,
      journal: this.journal,
      chatsOf: (height, transactions) => this.messenger.chatsOf(height, transactions),
      isOnRecord: (transaction) => this.ownSpends.isOnRecord(transaction),
      keyring,
      log: log.child('follower'),
      now,
      events: {
        cut: (height, effects, live) => this.#cutApplied(height, effects, live),
        reopened: () => this.outgoing.reopened(),
        resync: (reason) => {
          this.#confirmedThrough = book.meta.indexedHeight - this.confirmations + 1;
          this.events.emit('resync_required', { reason, indexed_height: book.meta.indexedHeight });
        },
      },
    });
    this.#submitter = new Submitter({
      client,
      book,
      journal: this.journal,
      log: log.child('submitter'),
      now: this.steady,
      changed: () => this.outgoing.changed(),
    });
    this.outgoing = new Outgoing(settings, {
      book,
      store,
      journal: this.journal,
      keyring,
      follower: this.follower,
      ownSpends: this.ownSpends,
      submitter: this.#submitter,
      network: options.network,
      recheck: (operation) => this.staking.recheck(operation),
      log: log.child('outgoing'),
      now,
      steady: this.steady,
    });
    this.staking = new Staking({ client, book, keyring, network: options.network });
    this.#stakingWatch = new StakingWatch({ client, book, events: this.events });
    this.multisig = new Multisig({
      client,
      book,
      journal: this.journal,
      keyring,
      follower: this.follower,
      network: options.network,
      maxFeePerMass: settings.maxFeePerMass,
      now,
    });
    this.#multisigWatch = new MultisigWatch({ client, book, events: this.events });
    this.incoming = new Incoming({ client, book, store, events: this.events });
    this.#automation = new Automation(options, { book, outgoing: this.outgoing, log, randomBytes: this.randomBytes });
  }

  /** A state directory of other words would show coins that these keys cannot spend. */
  #checkOwner(): void {
    const first = this.book.branches.receive[0];
    if (first === undefined) return;
    if (this.keyring.addressRecord('receive', 0, 0).address !== first.address)
      throw new WalletError('state_damaged', 'the state directory belongs to a wallet with other words');
  }

  /** Follows the node until `close`. */
  start(): void {
    this.#loop ??= this.#run();
  }

  /** One round of the loop; also used by short-lived commands. */
  async turn(): Promise<void> {
    const away = this.follower.node.trouble !== null;
    await this.follower.step();
    await this.outgoing.continueAll();
    if (this.follower.node.trouble !== null) return;
    if (this.follower.caughtUp) await this.ownSpends.look();
    if (away) this.#submitter.retryNow();
    await this.#submitter.tick();
    await this.incoming.poll();
    if (this.follower.caughtUp) await this.#stakingWatch.look();
    if (this.follower.caughtUp) await this.#multisigWatch.look();
    if (this.follower.caughtUp) await this.#automation.run();
  }

  /** Resolves when a new listener will get every later change of the stake. */
  beginStakingEvents(): Promise<void> {
    return this.#stakingWatch.begin();
  }

  /** Runs the next round of the loop at once. */
  wake(): void {
    this.#wake?.();
  }

  /** Runs when the wallet is closed, after everything else. */
  onClosed(run: () => void): void {
    this.#closed.push(run);
  }

  async close(): Promise<void> {
    this.#stopped = true;
    this.wake();
    await this.#loop;
    await this.journal.settled();
    await this.store.close();
    this.#chatKeys.close();
    this.keyring.close();
    for (const run of this.#closed) run();
  }

  async #run(): Promise<void> {
    while (!this.#stopped) {
      try {
        await this.turn();
      } catch (error) {
        this.log.error('an update of the wallet failed', { error });
      }
      if (this.#stopped) return;
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, this.#pollMillis);
        this.#wake = () => {
          clearTimeout(timer);
          resolve();
        };
      });
    }
  }

  #cutApplied(height: number, effects: CutEffects, live: boolean): void {
    this.outgoing.cutApplied(effects.outgoing);
    if (!live) return;
    const indexed_height = height;
    if (this.events.wanted('finalized')) {
      const payments = effects.history.flatMap((entry) => paymentsOf(entry, this.book));
      if (payments.length > 0) this.events.emit('finalized', { indexed_height, payments });
    }
    for (const record of this.events.wanted('settled') ? effects.outgoing : [])
      if (record.purpose === 'pay')
        this.events.emit('settled', { indexed_height, ...outgoingDocument(record), state: stateOf([record]) });
    for (const { source, address, amount } of this.events.wanted('staking') ? effects.outputsAdded : [])
      if (source === 'stake_reward')
        this.events.emit('staking', { indexed_height, kind: 'reward', address, amount: formatCoins(amount) });
    this.#emitConfirmations(height);
  }

  #emitConfirmations(height: number): void {
    const from = Math.max(0, this.#confirmedThrough);
    const through = height - this.confirmations + 1;
    if (through <= from) return;
    this.#confirmedThrough = through;
    if (!this.events.wanted('confirmations')) return;
    const { confirmations } = this;
    this.journal
      .settled()
      .then(() => this.store.historyAfter(from, Number.MAX_SAFE_INTEGER, through))
      .then((entries) => {
        const payments = entries.flatMap((entry) => paymentsOf(entry, this.book));
        if (payments.length > 0) this.events.emit('confirmations', { indexed_height: height, confirmations, payments });
      })
      .catch((error) => this.log.error('confirmations could not be read', { error }));
  }
}
