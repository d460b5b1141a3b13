/** What a block takes at today's difficulty, and how much of it a share would have been. */
import type { PoolDocument } from '../../pool/api/documents.ts';
import { smallPercent } from '../format.ts';
import { useDocument } from './hooks.ts';

export const useBlockWork = (): string | undefined =>
  useDocument<PoolDocument>('pool', 60_000).data?.network_figures.block_work;

export const partOfBlock = (work: string, blockWork: string | undefined): string =>
  blockWork === undefined || blockWork === '0' ? '–' : smallPercent(Number(work) / Number(blockWork));
