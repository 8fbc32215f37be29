// A tour of one service with Apache Thrift's C++: `tour host port service transport protocol`.
//
// The service is thrift1 or thrift2; with the transport `http` the port is that of HTTP. Prints `tour done`. The Thrift
// compiler has put its code into gen/thrift1 and gen/thrift2.
#include "tour.h"

#include <iostream>

#include <thrift/protocol/TBinaryProtocol.h>
#include <thrift/protocol/TCompactProtocol.h>
#include <thrift/transport/TBufferTransports.h>
#include <thrift/transport/THttpClient.h>
#include <thrift/transport/TSocket.h>

using namespace apache::thrift::protocol;
using namespace apache::thrift::transport;

namespace {

constexpr int TIMEOUT_MS = 60'000;

std::shared_ptr<TTransport> connection(const std::string& host, int port, const std::string& service,
                                       const std::string& transport) {
  auto socket = std::make_shared<TSocket>(host, port);
  socket->setConnTimeout(TIMEOUT_MS);
  socket->setRecvTimeout(TIMEOUT_MS);
  socket->setSendTimeout(TIMEOUT_MS);
  if (transport == "unbuffered") return socket;
  if (transport == "buffered") return std::make_shared<TBufferedTransport>(socket);
  if (transport == "framed") return std::make_shared<TFramedTransport>(socket);
  if (transport == "http") return std::make_shared<THttpClient>(socket, host, "/" + service);
  throw std::invalid_argument("no transport " + transport);
}

std::shared_ptr<TProtocol> speak(std::shared_ptr<TTransport> transport, const std::string& protocol) {
  if (protocol == "binary") return std::make_shared<TBinaryProtocol>(transport);
  if (protocol == "old-binary") return std::make_shared<TBinaryProtocol>(transport, 0, 0, false, false);
  if (protocol == "compact") return std::make_shared<TCompactProtocol>(transport);
  throw std::invalid_argument("no protocol " + protocol);
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc != 6) throw std::invalid_argument("arguments: host port service transport protocol");
  const std::string service = argv[3], transport = argv[4], protocol = argv[5];
  auto connected = connection(argv[1], std::stoi(argv[2]), service, transport);
  connected->open();
  auto tour = service == "thrift1" ? tour1 : tour2;
  tour(speak(connected, protocol), "cpp_" + service + "_" + transport + "_" + protocol);
  connected->close();
  std::cout << "tour done" << std::endl;
} catch (const std::exception& error) {
  std::cerr << typeid(error).name() << ": " << error.what() << std::endl;
  return 1;
}
