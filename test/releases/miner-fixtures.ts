/** Files of a miner or a proxy: what it knows of pools' books, how fast its devices were, and what it may build. */
import { cpSync } from 'node:fs';
import { readBooks } from '../../miner/books/books-file.ts';
import { readEpochs, writeEpochs } from '../../miner/devices/epoch-file.ts';
import { RateFile } from '../../miner/devices/rate-file.ts';
import { TuningFile } from '../../miner/devices/tuning-file.ts';
import { claimFormat } from '../../runtime/files/directory-format.ts';
import { booksOf, convictedPool, raised } from '../miner/convicted-pool.ts';
import { temporaryDirectory } from '../temporary.ts';
import { type Fixture, plain } from './fixture.ts';

const DEVICE = 'a card of a release';
const TUNING = { shape: { variant: 'stream', lanes: 8, flight: 2, workgroup: 256 } };
/** Its address is a free port's, and stands in the files. */
const API = /http:\/\/127\.0\.0\.1:\d+/g;

const miner: Fixture = {
  name: 'miner',
  async write(folder) {
    const pool = await convictedPool();
    const directory = temporaryDirectory();
    await claimFormat(directory, 'miner');
    const books = booksOf(directory, pool, () => undefined);
    await raised(books);
    await books.stop();
    await new RateFile(directory, 'development').remember(DEVICE, 123_456);
    await new TuningFile(directory).remember(DEVICE, TUNING);
    await writeEpochs(directory, 'development', { pool: { tokens: 2, atMillis: 1_800_000_000_000, paid: [3, 4] } });
    cpSync(directory, folder, { recursive: true });
  },
  async read(folder) {
    await claimFormat(folder, 'miner');
    // The watch that goes on from the file: with another key the pool would be a stranger.
    const pool = await convictedPool();
    const books = booksOf(folder, pool, () => undefined);
    const { compared, newest, alarms } = books.figures;
    await books.stop();
    const facts = {
      books: { compared, newest, alarms },
      saved: readBooks(folder, 'development'),
      rate: new RateFile(folder, 'development').of(DEVICE),
      tuning: new TuningFile(folder).of(DEVICE),
      epochs: readEpochs(folder, 'development'),
    };
    return JSON.parse(JSON.stringify(plain(facts)).replaceAll(API, 'the pool')) as unknown;
  },
};

export const MINER_FIXTURES: readonly Fixture[] = [miner];
