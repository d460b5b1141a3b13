/** Logs once when a node that follows others arrives at the end of the chain, and once when it is no longer there. */
import type { Logger } from '../../runtime/log/log.ts';
import type { Sync } from '../full-node.ts';

export type SyncWatchDependencies = { readonly sync: () => Sync; readonly log: Logger };

export class SyncWatch {
  readonly #with: SyncWatchDependencies;
  #wasSynced = false;

  constructor(dependencies: SyncWatchDependencies) {
    this.#with = dependencies;
  }

  /** After every cut, and now and then: that cuts stay away is noticed by nothing else. */
  look(): void {
    const { sync, log } = this.#with;
    const { synced, height, peers } = sync();
    if (synced === this.#wasSynced) return;
    this.#wasSynced = synced;
    if (synced) log.info('synced', { height, peers: peers?.peers });
    else log.warn('no longer synced', { height, behind_by: peers?.behindBy, peers: peers?.peers });
  }
}
