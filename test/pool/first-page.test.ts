import { brotliDecompressSync } from 'node:zlib';
import { expect, test } from 'vitest';
import { FirstPage } from '../../pool/api/public/first-page.ts';
import { compressed, etagOf, type StaticFile } from '../../pool/api/public/static-files.ts';

const file = (text: string): StaticFile => {
  const body = Buffer.from(text);
  return { type: 'text/html', body, brotli: compressed(body), etag: etagOf(body), isHashed: false };
};
const PAGE = '<!doctype html><html><head><title>x</title></head><body><script src="./a.js"></script></body></html>';

test('the page comes with the newest figures as data, and as it is while there are none', () => {
  let figures: object | undefined;
  const plain = file(PAGE);
  const first = new FirstPage(plain, () => figures);
  expect(first.page).toBe(plain);
  figures = { name: 'A pool', price: "$& $1 $'" };
  const { page } = first;
  expect(page.etag).not.toBe(plain.etag);
  expect(page.body.toString()).toBe(
    PAGE.replace(
      '</head>',
      () => `<script type="application/json" id="first-document">${JSON.stringify(figures)}</script></head>`,
    ),
  );
  expect(brotliDecompressSync(page.brotli as Buffer).equals(page.body)).toBe(true);
  expect(first.page).toBe(page);
  figures = { name: 'Another' };
  expect(first.page.body.toString()).toContain('Another');
});

test('nothing in the figures ends the element they are in, or begins another', () => {
  const figures = { name: '</script><script>alert(1)</script><!--', notice: '</head>' };
  const text = new FirstPage(file(PAGE), () => figures).page.body.toString();
  expect(text.match(/<script/g)).toHaveLength(2);
  expect(text).not.toContain('<!--');
  const data = /id="first-document">([^<]*)<\/script>/.exec(text)?.[1] as string;
  expect(JSON.parse(data)).toEqual(figures);
});

test('a page without a head stays as it is', () => {
  const plain = file('no page');
  expect(new FirstPage(plain, () => ({ name: 'x' })).page).toBe(plain);
});
