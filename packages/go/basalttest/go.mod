module basalt/basalttest

go 1.21
