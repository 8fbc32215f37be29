// A tour of one service with Apache Thrift's Go: `tour host port service transport protocol`.
//
// The service is thrift1 or thrift2; with the transport `http` the port is that of HTTP. The transport `tls` is a buffered
// one that trusts the authority in the file $TLS_CA, and shows the certificate in the file $TLS_CERTIFICATE if there is
// one. Prints `tour done`. The Thrift compiler has put its code into gen/thrift1 and gen/thrift2.
package main

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"reflect"
	"time"

	"basalt/tour/gen/thrift2/hbase"

	"github.com/apache/thrift/lib/go/thrift"
)

func main() {
	if len(os.Args) != 6 {
		panic("arguments: host port service transport protocol")
	}
	host, port, service, transport, protocol := os.Args[1], os.Args[2], os.Args[3], os.Args[4], os.Args[5]
	conf := &thrift.TConfiguration{
		ConnectTimeout:     time.Minute,
		SocketTimeout:      time.Minute,
		TBinaryStrictWrite: thrift.BoolPtr(protocol != "old-binary"),
	}
	connection := connect(net.JoinHostPort(host, port), service, transport, conf)
	check(connection.Open())
	var factory thrift.TProtocolFactory
	switch protocol {
	case "binary", "old-binary":
		factory = thrift.NewTBinaryProtocolFactoryConf(conf)
	case "compact":
		factory = thrift.NewTCompactProtocolFactoryConf(conf)
	default:
		panic("no protocol " + protocol)
	}
	client := thrift.NewTStandardClient(factory.GetProtocol(connection), factory.GetProtocol(connection))
	table := []byte(fmt.Sprintf("go_%s_%s_%s", service, transport, protocol))
	switch service {
	case "thrift1":
		tour1(client, table)
	case "thrift2":
		tour2(client, table)
	default:
		panic("no service " + service)
	}
	check(connection.Close())
	fmt.Println("tour done")
}

func connect(address, service, transport string, conf *thrift.TConfiguration) thrift.TTransport {
	socket := thrift.NewTSocketConf(address, conf)
	switch transport {
	case "tls":
		conf.TLSConfig = encryption()
		return thrift.NewTBufferedTransport(thrift.NewTSSLSocketConf(address, conf), 4096)
	case "unbuffered":
		return socket
	case "buffered":
		return thrift.NewTBufferedTransport(socket, 4096)
	case "framed":
		return thrift.NewTFramedTransportConf(socket, conf)
	case "http":
		return must(thrift.NewTHttpClient("http://" + address + "/" + service))
	default:
		panic("no transport " + transport)
	}
}

// encryption trusts the authority in $TLS_CA, and shows the certificate in $TLS_CERTIFICATE.
func encryption() *tls.Config {
	authorities := x509.NewCertPool()
	if !authorities.AppendCertsFromPEM(must(os.ReadFile(os.Getenv("TLS_CA")))) {
		panic("no certificate in $TLS_CA")
	}
	config := &tls.Config{RootCAs: authorities}
	if file := os.Getenv("TLS_CERTIFICATE"); file != "" {
		config.Certificates = []tls.Certificate{must(tls.LoadX509KeyPair(file, file))}
	}
	return config
}

// check panics with the error of a call that must succeed. The library prints the address of an exception's text;
// this prints the text.
func check(err error) {
	if refused, ok := errors.AsType[*hbase.TIOError](err); ok {
		panic(refused.GetMessage())
	}
	if err != nil {
		panic(err)
	}
}

// must is the answer of a call that must succeed.
func must[T any](answer T, err error) T {
	check(err)
	return answer
}

// failure is the exception of kind E with which a call must have failed.
func failure[E error](err error) E {
	var found E
	if !errors.As(err, &found) {
		panic(fmt.Sprintf("%T expected, not %v", found, err))
	}
	return found
}

// equal panics unless the two are deeply equal.
func equal(found, expected any) {
	if !reflect.DeepEqual(found, expected) {
		panic(fmt.Sprintf("found %v, expected %v", found, expected))
	}
}

// big is a value that is larger than any buffer on the way: a mebibyte of every byte.
func big() string {
	bytes := make([]byte, 1<<20)
	for at := range bytes {
		bytes[at] = byte(at)
	}
	return string(bytes)
}
