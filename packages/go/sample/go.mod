module basalt/sample

go 1.26

require (
	github.com/basalt-server/basalt/packages/go/basalttest v0.0.0
	github.com/apache/thrift v0.25.0
)

replace github.com/basalt-server/basalt/packages/go/basalttest => ../basalttest
