module github.com/basalt-server/basalt/packages/go/basalttest

go 1.21
