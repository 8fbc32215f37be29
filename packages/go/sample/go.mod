module basalt/sample

go 1.26

require (
	basalt/basalttest v0.0.0
	github.com/apache/thrift v0.25.0
)

replace basalt/basalttest => ../basalttest
