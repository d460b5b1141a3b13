/**
 * Changes by the owner of a validator (docs/wallet.md, Staking 9; ledger rules 65 to 68): heartbeat, consensus key,
 * endpoint, commission, exit. Everything that can be refused is refused before a key signs.
 */
import { formatAddress, keyAddressPayload, parseAddress } from '../../protocol/address.ts';
import type { ValidatorDocument } from '../../protocol/api/staking-documents.ts';
import { type Bytes, fromHex, toHex } from '../../protocol/bytes.ts';
import { SIGNATURE_BYTES } from '../../protocol/crypto/key-sizes.ts';
import { CHANGE_DELAY_EPOCHS, COMMISSION_DELAY_EPOCHS } from '../../protocol/staking/limits.ts';
import { endpointMessage, possessionMessage, selfBondId } from '../../protocol/staking/names.ts';
import { checkCommission, type StakingOperation } from '../../protocol/staking/operation.ts';
import { readValidator } from '../chain/staking-reads.ts';
import { CONSENSUS_KEY_INDEXES } from '../keys/derivation.ts';
import { type SigningKey, signMessage } from '../keys/signing.ts';
import type { OperationRecord, OperationTerms } from '../state/records.ts';
import { WalletError } from '../wallet-error.ts';
import { checkKeyIndex, protocolField, refuseUsedKey } from './consensus-key.ts';
import { recordOf, type StakingDependencies } from './operation-record.ts';
import { readEndpoint } from './overlay-endpoint.ts';

/** An operation in two steps: refusals, then the signatures inside it. `fromEpoch` is shown before the question. */
export type ValidatorChange = {
  readonly prepare: () => Promise<OperationRecord>;
  readonly complete?: () => Promise<OperationRecord>;
  /** The earliest epoch in which it is in force, once it was prepared. */
  readonly fromEpoch: () => number | undefined;
};

/** Keys that are tried for a heartbeat: from the last index down, as validators take them. */
const SEARCHED_KEYS = 1_024;
const KEYS_AT_ONCE = 32;

type Found = { readonly epoch: number; readonly interval_cuts: number; readonly validator: ValidatorDocument };

export class ValidatorChanges {
  readonly #with: StakingDependencies;

  constructor(dependencies: StakingDependencies) {
    this.#with = dependencies;
  }

  heartbeat(validator: string, index: number | undefined): ValidatorChange {
    if (index !== undefined) checkKeyIndex(index);
    const prepare = async () => {
      const { epoch, interval_cuts: cuts, validator: found } = await this.#mine(validator);
      if (found.heartbeat_epoch >= epoch)
        throw new WalletError(
          'heartbeat_repeated',
          `the heartbeat of this validator was already sent this epoch (${epoch}): nothing is needed`,
          { epoch },
        );
      const keyIndex = index === undefined ? await this.#activeIndex(found) : this.#checkActive(found, index);
      const operation = { name: 'heartbeat', validator: fromHex(validator), epoch } as const;
      // Useful only in its epoch: if it were valid longer, it would delay the next one.
      const terms = { owner: found.consensus_key_address, keyIndex, lastHeight: (epoch + 1) * cuts - 1 };
      return { ...this.#record('validator_heartbeat', found, operation), ...terms };
    };
    return { prepare, fromEpoch: () => undefined };
  }

  rotate(validator: string, index: number, endpointHex: string): ValidatorChange {
    checkKeyIndex(index);
    const endpoint = readEndpoint(endpointHex);
    const key = this.#key(index);
    let from: Found | undefined;
    const operation = (possession: Bytes) =>
      ({ name: 'rotate', validator: fromHex(validator), consensusKey: key.publicKey, possession, endpoint }) as const;
    const record = (signature: Bytes) =>
      this.#record('validator_rotate', (from as Found).validator, operation(signature), { consensusKeyIndex: index });
    return {
      prepare: async () => {
        from = await this.#mine(validator);
        await refuseUsedKey(key.publicKey, index, this.#with);
        refusePending('consensus key', from.validator.pending_consensus_key_epoch);
        return record(new Uint8Array(SIGNATURE_BYTES));
      },
      complete: async () => {
        const { owner_address: owner } = (from as Found).validator;
        const message = possessionMessage(
          this.#chainId,
          parseAddress(owner, this.#with.network).payload,
          key.publicKey,
        );
        return record(await signMessage(key, message));
      },
      fromEpoch: () => from && from.epoch + CHANGE_DELAY_EPOCHS,
    };
  }

  endpoint(validator: string, index: number, endpointHex: string): ValidatorChange {
    checkKeyIndex(index);
    const endpoint = readEndpoint(endpointHex);
    let from: Found | undefined;
    const record = (signature: Bytes) => {
      const operation = { name: 'endpoint', validator: fromHex(validator), endpoint, signature } as const;
      return this.#record('validator_endpoint', (from as Found).validator, operation);
    };
    return {
      prepare: async () => {
        from = await this.#mine(validator);
        this.#checkActive(from.validator, index);
        refusePending('endpoint', from.validator.pending_endpoint?.epoch);
        return record(new Uint8Array(SIGNATURE_BYTES));
      },
      complete: async () =>
        record(await signMessage(this.#key(index), endpointMessage(this.#chainId, fromHex(validator), endpoint))),
      fromEpoch: () => from && from.epoch + CHANGE_DELAY_EPOCHS,
    };
  }

  commission(validator: string, basisPoints: number): ValidatorChange {
    protocolField('commission_bps', 'commission_invalid', () => checkCommission(basisPoints));
    let from: Found | undefined;
    const prepare = async () => {
      from = await this.#mine(validator);
      refusePending('commission', from.validator.pending_commission?.epoch);
      const operation = { name: 'commission', validator: fromHex(validator), commission: basisPoints } as const;
      return this.#record('validator_commission', from.validator, operation, { commissionBps: basisPoints });
    };
    return { prepare, fromEpoch: () => from && from.epoch + COMMISSION_DELAY_EPOCHS };
  }

  exit(validator: string): ValidatorChange & { readonly position: string } {
    const position = toHex(selfBondId(fromHex(validator)));
    const prepare = async () => {
      const { validator: found } = await this.#mine(validator);
      const operation = { name: 'exit', validator: fromHex(validator) } as const;
      return { ...this.#record('validator_exit', found, operation), position };
    };
    return { position, prepare, fromEpoch: () => undefined };
  }

  get #chainId(): Bytes {
    return fromHex(this.#with.book.meta.chainId as string);
  }

  #key(index: number): SigningKey {
    return this.#with.keyring.key({ branch: 'receive', index });
  }

  #addressOf(index: number): string {
    return formatAddress(keyAddressPayload(this.#key(index).publicKey), this.#with.network);
  }

  /** A validator whose owner is this wallet, and that has not left. */
  async #mine(id: string): Promise<Found> {
    const found = await readValidator(this.#with.client, id);
    if (found === undefined)
      throw new WalletError('validator_unknown', 'no validator has this identifier: see validators', {
        field: 'validator',
      });
    const { owner_address: owner, state } = found.validator;
    if (this.#with.book.address(owner) === undefined)
      throw new WalletError(
        'validator_not_mine',
        `the validator belongs to ${owner}: use the wallet that registered it`,
        {
          field: 'validator',
          owner_address: owner,
        },
      );
    if (state === 'exiting' || state === 'slashed')
      throw new WalletError(
        'validator_inactive',
        `the validator is ${state}: nothing about it can be changed any more`,
        {
          validator: id,
          state,
        },
      );
    return found;
  }

  #checkActive({ consensus_key_address: active }: ValidatorDocument, index: number): number {
    if (this.#addressOf(index) === active) return index;
    throw new WalletError(
      'consensus_key_inactive',
      `the key of index ${index} is not the one that signs for the validator now: name the index of that one`,
      { field: 'consensus_key_index', consensus_key_address: active },
    );
  }

  async #activeIndex(found: ValidatorDocument): Promise<number> {
    for (let tried = 0; tried < SEARCHED_KEYS; tried++) {
      const index = CONSENSUS_KEY_INDEXES.last - tried;
      if (this.#with.keyring.addressRecord('receive', index, 0).address === found.consensus_key_address) return index;
      // Calls of others are answered in between.
      if (tried % KEYS_AT_ONCE === KEYS_AT_ONCE - 1) await new Promise((resolve) => setImmediate(resolve));
    }
    throw new WalletError(
      'consensus_key_inactive',
      `the key that signs for the validator is none of the last ${SEARCHED_KEYS} of this wallet: name its index`,
      { field: 'consensus_key_index', consensus_key_address: found.consensus_key_address },
    );
  }

  #record(
    kind: OperationRecord['kind'],
    { validator_id: validator, owner_address: owner }: ValidatorDocument,
    operation: StakingOperation,
    terms: OperationTerms = {},
  ): OperationRecord {
    return recordOf(operation, { kind, owner, validator, position: null, amount: 0n, terms });
  }
}

function refusePending(what: string, epoch: number | null | undefined): void {
  if (epoch === null || epoch === undefined) return;
  throw new WalletError(
    'change_pending',
    `another ${what} is announced and in force from epoch ${epoch} on: wait for it`,
    {
      epoch,
    },
  );
}
