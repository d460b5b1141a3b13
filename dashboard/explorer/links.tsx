/** Names of things on the chain, each a link to its page. */
import type { ComponentChildren } from 'preact';
import { count } from '../format.ts';
import { type ExplorerKind, explorerLink } from '../router.ts';
import { Copied, ShortId } from '../view/parts.tsx';

export const ChainLink = ({ kind, id, whole = false }: { kind: ExplorerKind; id: string; whole?: boolean }) => {
  const link = (
    <a class="mono" href={explorerLink(kind, id)} title={id}>
      {whole ? id : <ShortId id={id} />}
    </a>
  );
  return whole ? link : <Copied text={id}>{link}</Copied>;
};

export const CutLink = ({ height }: { height: number }) => <a href={explorerLink('cut', height)}>{count(height)}</a>;

export type Facts = readonly (readonly [string, ComponentChildren])[];

export const FactList = ({ facts }: { facts: Facts }) => (
  <dl class="facts">
    {facts.map(([name, value]) => (
      <div key={name}>
        <dt>{name}</dt>
        <dd>{value}</dd>
      </div>
    ))}
  </dl>
);
