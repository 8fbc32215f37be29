// A tour of one service with Apache Thrift's Node.js: `node tour.js host port service transport protocol`.
//
// The service is thrift1 or thrift2; with the transport `http` the port is that of HTTP. The transport `tls` is a buffered
// one that trusts the authority in the file $TLS_CA, and shows the certificate in the file $TLS_CERTIFICATE if there is
// one. Prints `tour done`. The Thrift compiler has put its code into gen/thrift1 and gen/thrift2.
'use strict';

const fs = require('fs');
const thrift = require('thrift');

const TIMEOUT_MS = 60000;

class OldBinaryProtocol extends thrift.TBinaryProtocol {
  constructor(transport) {
    super(transport, false, false);
  }
}

const TRANSPORTS = {
  buffered: thrift.TBufferedTransport,
  framed: thrift.TFramedTransport,
  http: thrift.TBufferedTransport,
  tls: thrift.TBufferedTransport,
};

const PROTOCOLS = {
  binary: thrift.TBinaryProtocol,
  'old-binary': OldBinaryProtocol,
  compact: thrift.TCompactProtocol,
};

const SERVICES = {
  thrift1: {client: require('./gen/thrift1/Hbase'), tour: require('./thrift1')},
  thrift2: {client: require('./gen/thrift2/THBaseService'), tour: require('./thrift2')},
};

function connect(transport, host, port, service, options) {
  switch (transport) {
    case 'http':
      return thrift.createHttpConnection(host, port, {...options, path: `/${service}`});
    case 'tls': {
      const own = process.env.TLS_CERTIFICATE && fs.readFileSync(process.env.TLS_CERTIFICATE);
      const tls = {ca: fs.readFileSync(process.env.TLS_CA), ...(own && {cert: own, key: own})};
      return thrift.createSSLConnection(host, port, {...options, ...tls});
    }
    default:
      return thrift.createConnection(host, port, options);
  }
}

async function main() {
  const [host, port, service, transport, protocol] = process.argv.slice(2);
  const options = {transport: TRANSPORTS[transport], protocol: PROTOCOLS[protocol], timeout: TIMEOUT_MS};
  const http = transport === 'http';
  const connection = connect(transport, host, Number(port), service, options);
  const fail = (error) => {
    console.error(error);
    process.exit(1);
  };
  connection.on('error', fail);
  connection.on('timeout', () => fail(new Error('no answer in time')));
  connection.on('close', () => fail(new Error('the server closed the connection')));
  const create = http ? thrift.createHttpClient : thrift.createClient;
  const client = create(SERVICES[service].client, connection);
  await SERVICES[service].tour(client, Buffer.from(`node_${service}_${transport}_${protocol}`));
  connection.removeAllListeners('close');
  if (!http) {
    connection.end();
  }
  console.log('tour done');
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
