package basalttest

import (
	"crypto/tls"
	"net"
	"net/http"
	"os"
	"reflect"
	"strings"
	"syscall"
	"testing"
)

func TestServersHavePortsOfTheirOwnUntilTheTestEnds(t *testing.T) {
	var one, other *Server
	t.Run("running", func(t *testing.T) {
		one, other = Start(t), Start(t)
		if one.Listen == other.Listen || one.HTTP == other.HTTP || one.PID == other.PID {
			t.Fatalf("%+v and %+v share something", one, other)
		}
		connection, err := net.Dial("tcp", one.Listen)
		if err != nil {
			t.Fatal(err)
		}
		connection.Close()
		if _, err := os.Stat(one.DataDir); err != nil {
			t.Fatal(err)
		}
		one.Reset(t)
	})
	if connection, err := net.Dial("tcp", one.Listen); err == nil {
		connection.Close()
		t.Fatal("the server still accepts connections")
	}
	if _, err := os.Stat(one.DataDir); !os.IsNotExist(err) {
		t.Fatalf("%s is left: %v", one.DataDir, err)
	}
}

func TestEachTestReturnsToTheTemplate(t *testing.T) {
	server := Start(t)
	create := func(t testing.TB, table string) {
		t.Helper()
		server.Post(t, "/rest/"+table+"/schema", `{"name": "`+table+`", "ColumnSchema": [{"name": "f"}]}`)
	}
	fills := 0
	restore := server.Template(t, func() {
		fills++
		create(t, "library")
	})
	for _, name := range []string{"first", "second"} {
		t.Run(name, func(t *testing.T) {
			restore(t)
			if tables := strings.TrimSpace(server.send(t, http.MethodGet, "/rest/", "")); tables != "library" {
				t.Fatalf("%q", tables)
			}
			create(t, "other")
			server.send(t, http.MethodDelete, "/rest/library/schema", "")
		})
	}
	if fills != 1 {
		t.Fatal(fills)
	}
}

func TestFaultsAreArmedAndCleared(t *testing.T) {
	server := Start(t)
	busy := Fault{Method: "Get", Fault: "region_too_busy", Calls: 3, Table: "t"}
	late := Fault{Method: "putMultiple", Fault: "delay", Calls: 1, DelayMs: 20}
	server.Faults(t, busy, late)
	if armed := server.FaultsLeft(t); !reflect.DeepEqual(armed, []Fault{busy, late}) {
		t.Fatal(armed)
	}
	server.Faults(t)
	if armed := server.FaultsLeft(t); len(armed) != 0 {
		t.Fatal(armed)
	}
}

func TestAWrongSettingIsReportedInTheServersWords(t *testing.T) {
	_, err := start([]string{"serve", "--ephemeral"}, []string{"memstore.flush_byte=1"})
	if err == nil || !strings.Contains(err.Error(), "memstore.flush_byte") {
		t.Fatal(err)
	}
}

func TestAKilledServerIsReported(t *testing.T) {
	server, err := start([]string{"serve", "--ephemeral"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(server.PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if err := server.stop(); err == nil || !strings.Contains(err.Error(), "killed") {
		t.Fatal(err)
	}
}

func TestAMissingProgramIsNamed(t *testing.T) {
	t.Setenv("BASALT_PROGRAM", "/nowhere/basalt")
	if _, err := start([]string{"serve", "--ephemeral"}, nil); err == nil || !strings.Contains(err.Error(), "BASALT_PROGRAM=/nowhere/basalt") {
		t.Fatal(err)
	}
	t.Setenv("BASALT_PROGRAM", "")
	t.Setenv("PATH", t.TempDir())
	if _, err := start([]string{"serve", "--ephemeral"}, nil); err == nil || !strings.Contains(err.Error(), "set BASALT_PROGRAM") {
		t.Fatal(err)
	}
}

func TestASecureServerKnowsWhoCalls(t *testing.T) {
	server := StartSecure(t)
	config, err := server.Security.TLS()
	if err != nil {
		t.Fatal(err)
	}
	connection, err := tls.Dial("tcp", server.Listen, config)
	if err != nil {
		t.Fatal(err)
	}
	connection.Close()
	server.Reset(t)
	server.Security = nil
	response, err := http.Post("http://"+server.HTTP+"/test/reset", "application/json", strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	if response.StatusCode != http.StatusUnauthorized {
		t.Fatal(response.Status)
	}
}
