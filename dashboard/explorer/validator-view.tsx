/** One validator, as the chain has it. */

import { count, percent } from '../format.ts';
import { linkTo } from '../router.ts';
import { Amount, Placeholder, State, WholeName } from '../view/parts.tsx';
import { word } from '../words/language.ts';
import { useChain } from './chain-document.ts';
import { isAlone } from './explorer-node.ts';
import { FactList } from './links.tsx';

const BASIS_POINTS = 10_000;

export function ValidatorView({ id }: { id: string }) {
  const { data, error } = useChain<'stakingValidator'>(`staking/validators/${encodeURIComponent(id)}`);
  const validator = data?.validator;
  return (
    <>
      <WholeName text={id} label={word('chain.validator_id')} />
      <section class="card">
        {validator === undefined ? (
          <Placeholder error={error} loading empty="" />
        ) : (
          <FactList
            facts={[
              [word('blocks.state'), <State key="state" state={validator.state} />],
              [word('chain.stake'), <Amount key="stake" atoms={validator.stake} />],
              [word('chain.self_bond'), <Amount key="bond" atoms={validator.self_bond} />],
              [word('chain.delegations'), count(validator.delegations)],
              [word('chain.commission'), percent(validator.commission_bps / BASIS_POINTS, 2)],
            ]}
          />
        )}
      </section>
      {isAlone() ? null : (
        <p>
          <a href={linkTo('staking')}>{word('chain.all_validators')}</a>
        </p>
      )}
    </>
  );
}
