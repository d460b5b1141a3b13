/** Parses the terms that a pool publishes: malformed terms are refused. */
import { parseAddress } from '../../protocol/address.ts';
import { isWhole } from '../../protocol/books/books-slice.ts';
import { type PublishedTerms, termsFault } from '../../protocol/books/books-terms.ts';
import type { NetworkName } from '../../protocol/network.ts';
import { SERVICES } from '../journal/journal-record.ts';
import { type Findings, REMEDIES } from './findings.ts';
import { fieldsOf, isNetwork } from './public-rows.ts';

const MAX_TERMS = 10_000;
const TERMS_FIELDS = ['from_slice', 'slice_cuts', 'window_thousandths', 'fee_ppm'] as const;

/** The published terms, and the newest cut in the books. */
export type ReadTerms = PublishedTerms & { readonly height?: number };

export function readTerms(answer: unknown): ReadTerms {
  const { address, network, height, window_fee_from, terms } = fieldsOf(answer);
  const isForm = typeof address === 'string' && isNetwork(network) && isTerms(terms);
  const isWholeOrAbsent = (value: unknown): value is number | undefined => value === undefined || isWhole(value);
  if (!isForm || !isWholeOrAbsent(height) || !isWholeOrAbsent(window_fee_from))
    throw new Error('its terms have no such form');
  parseAddress(address, network as NetworkName);
  return {
    address,
    network,
    terms,
    ...(height === undefined ? {} : { height }),
    ...(window_fee_from === undefined ? {} : { window_fee_from }),
  };
}

/** Lists of terms with integers, at least one for each service. */
function isTerms(terms: unknown): terms is PublishedTerms['terms'] {
  return SERVICES.every((service) => {
    const list: unknown = (terms as PublishedTerms['terms'] | undefined)?.[service];
    return (
      Array.isArray(list) &&
      list.length <= MAX_TERMS &&
      list.every((each) => TERMS_FIELDS.every((name) => isWhole(each?.[name])) && each.slice_cuts > 0)
    );
  });
}

/** Terms that no pool can have (rule 3). A pool without a cut has none yet. */
export function auditTerms({ terms, height }: ReadTerms, findings: Findings): void {
  const fault = termsFault(terms, height);
  if (fault === undefined || (fault === 'empty' && height === undefined)) return;
  findings.add('terms', 'published', `false: ${fault}`, REMEDIES.published);
}
