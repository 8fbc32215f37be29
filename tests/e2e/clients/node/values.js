// Values and expectations of both tours. Strings stand for their latin1 bytes.
'use strict';

const assert = require('node:assert').strict;

const thrift = require('thrift');

const bytes = (text) => Buffer.from(text, 'latin1');

/** Larger than any buffer on the way: a mebibyte of every byte. */
const BIG = Buffer.from(Uint8Array.from({length: 1 << 20}, (_, at) => at)).toString('latin1');

/** A 64-bit number as HBase stores it. */
function long(value) {
  const buffer = Buffer.alloc(8);
  buffer.writeBigInt64BE(BigInt(value));
  return buffer;
}

/** 0 to count - 1. */
const numbers = (count) => [...Array(count).keys()];

/** What the library (0.24) reads of a boolean in a list or map: with the compact protocol always false. */
const inContainer = (client, value) => value && client.pClass !== thrift.TCompactProtocol;

/** The exception of that kind which the call ends with. */
async function failure(kind, call) {
  const answer = await call.catch((error) => error);
  assert.ok(answer instanceof kind, `${kind.name} expected, not ${answer}`);
  return answer;
}

module.exports = {BIG, bytes, failure, inContainer, long, numbers};
