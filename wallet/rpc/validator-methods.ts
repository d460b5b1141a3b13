/**
 * Methods behind the operator's commands (beyond the specification's groups): changes by the owner of a validator. They
 * work like `stake`.
 */
import { integer, object, optional } from '../../protocol/api/schema.ts';
import type { ValidatorChange } from '../payments/validator-changes.ts';
import type { StakingKind } from '../state/records.ts';
import type { Wallet } from '../wallet.ts';
import { type Answer, method, wish } from './method.ts';
import { endpointField, idField, operate, terms } from './staking-methods.ts';

const keyIndexField = integer({ minimum: 0, description: '2147418112 to 2147483647' });

type Params = { readonly validator: string; readonly request_id: string; readonly dry_run?: boolean | undefined };

async function change(
  wallet: Wallet,
  kind: StakingKind,
  params: Params,
  { prepare, complete, fromEpoch, position }: ValidatorChange & { readonly position?: string },
): Promise<Answer> {
  const { validator, request_id: requestId } = params;
  const order = { requestId, kind, position, validator, compoundFirst: false, params: wish(params), prepare };
  const result = await operate(wallet, complete ? { ...order, complete } : order, params.dry_run === true);
  const epoch = fromEpoch();
  return result.submitted === false && epoch !== undefined ? { ...result, from_epoch: epoch } : result;
}

const says = (text: string): string => `${text} (beyond the specification: its command calls it)`;

export const validatorMethods = {
  validator_heartbeat: method(
    'Staking',
    says('Sends the heartbeat of the running epoch for a validator of this wallet'),
    object({ validator: idField, ...terms, consensus_key_index: optional(keyIndexField) }),
    (wallet, params) =>
      change(
        wallet,
        'validator_heartbeat',
        params,
        wallet.staking.changes.heartbeat(params.validator, params.consensus_key_index),
      ),
  ),
  validator_rotate: method(
    'Staking',
    says('Gives a validator another consensus key and endpoint'),
    object({ validator: idField, consensus_key_index: keyIndexField, overlay_endpoint_hex: endpointField, ...terms }),
    (wallet, params) => {
      const { validator, consensus_key_index: index, overlay_endpoint_hex: endpoint } = params;
      return change(wallet, 'validator_rotate', params, wallet.staking.changes.rotate(validator, index, endpoint));
    },
  ),
  validator_endpoint: method(
    'Staking',
    says('Replaces the endpoint of a validator; its active consensus key signs too'),
    object({ validator: idField, consensus_key_index: keyIndexField, overlay_endpoint_hex: endpointField, ...terms }),
    (wallet, params) => {
      const { validator, consensus_key_index: index, overlay_endpoint_hex: endpoint } = params;
      return change(wallet, 'validator_endpoint', params, wallet.staking.changes.endpoint(validator, index, endpoint));
    },
  ),
  validator_commission: method(
    'Staking',
    says('Announces another commission of a validator'),
    object({ validator: idField, commission_bps: integer({ minimum: 0 }), ...terms }),
    (wallet, params) =>
      change(
        wallet,
        'validator_commission',
        params,
        wallet.staking.changes.commission(params.validator, params.commission_bps),
      ),
  ),
  validator_exit: method(
    'Staking',
    says('Takes a validator out of the set; every position of it unbonds'),
    object({ validator: idField, ...terms }),
    (wallet, params) => change(wallet, 'validator_exit', params, wallet.staking.changes.exit(params.validator)),
  ),
};
