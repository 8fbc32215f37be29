// Package basalttest starts a Basalt server for a test: an empty server that Apache HBase's clients talk to, native
// or Thrift.
//
//	func TestApp(t *testing.T) {
//		server := basalttest.Start(t)
//		client := connect(t, server.Listen) // any HBase client
//		...
//	}
//
// The server has free ports of its own, so tests may run in parallel. It stops when the test ends, and its data is
// removed. The package has no dependencies.
//
// The program is the one that the variable BASALT_PROGRAM names, or else `basalt` in PATH.
package basalttest

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

const (
	startLimit = time.Minute
	stopLimit  = time.Minute
)

// Server is a running server that belongs to a test.
type Server struct {
	// Listen is the address of HBase's native protocol and of Thrift, such as "127.0.0.1:41234".
	Listen string `json:"listen"`
	// HTTP is the address of metrics, health and pages.
	HTTP string `json:"http"`
	// DataDir is the directory of the data.
	DataDir string `json:"data_dir"`
	// PID is the process id.
	PID int `json:"pid"`
	// Security says how to log in; nil for a server that StartSecure has not started.
	Security *Security `json:"security"`

	process *exec.Cmd
	log     *log
	ended   chan error
}

// Security has the files with which clients log in at a server with users.
type Security struct {
	// User is the superuser.
	User string `json:"user"`
	// CA is the file with the authority's certificate.
	CA string `json:"ca"`
	// Certificate is the file with the user's certificate and key.
	Certificate string `json:"certificate"`
	// Token is the token file for HADOOP_TOKEN_FILE_LOCATION of Java clients.
	Token string `json:"token"`
	// TokenText is the file with the same token as text: a password, or what follows "Authorization: Bearer".
	TokenText string `json:"token_text"`
}

// TLS returns the settings of a client that encrypts, and logs in with the certificate.
func (s *Security) TLS() (*tls.Config, error) {
	ca, err := os.ReadFile(s.CA)
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(ca) {
		return nil, fmt.Errorf("%s has no certificate", s.CA)
	}
	own, err := tls.LoadX509KeyPair(s.Certificate, s.Certificate)
	if err != nil {
		return nil, err
	}
	return &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{own}}, nil
}

// StartSecure is Start for a server with a certificate, whose users must log in.
func StartSecure(t testing.TB, settings ...string) *Server {
	t.Helper()
	return run(t, []string{"serve", "--ephemeral", "--secure"}, settings)
}

// Start starts an empty server with these settings, each as KEY=VALUE, and returns once it accepts calls. The server
// is stopped when the test and its subtests have ended. A server that does not start fails the test.
func Start(t testing.TB, settings ...string) *Server {
	t.Helper()
	return run(t, []string{"serve", "--ephemeral"}, settings)
}

func run(t testing.TB, arguments, settings []string) *Server {
	t.Helper()
	server, err := start(arguments, settings)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.stop(); err != nil {
			t.Error(err)
		}
	})
	return server
}

// Fault is a fault for the next calls of a data method. The server's documentation has the methods and faults.
type Fault struct {
	// Method is a method of HBase's native protocol, which stands for the same in Thrift, or a Thrift method, or "*".
	Method string `json:"method"`
	// Fault names the fault, such as "region_too_busy" or "drop_connection".
	Fault string `json:"fault"`
	// Calls is the number of calls that it still applies to.
	Calls int `json:"calls"`
	// Table restricts it to calls of one table.
	Table string `json:"table,omitempty"`
	// DelayMs is the time that the fault "delay" takes.
	DelayMs int `json:"delay_ms,omitempty"`
	// SplitRow is the row at which the fault "split" splits a region; by default, behind the scan's last row.
	SplitRow string `json:"split_row,omitempty"`
}

// Faults lets the next calls meet these faults instead of the present ones; without any, it clears them.
func (s *Server) Faults(t testing.TB, faults ...Fault) {
	t.Helper()
	body, err := json.Marshal(map[string][]Fault{"faults": append([]Fault{}, faults...)})
	if err != nil {
		t.Fatal(err)
	}
	s.Post(t, "/test/faults", string(body))
}

// FaultsLeft returns the faults that are still armed, each with the calls that are left.
func (s *Server) FaultsLeft(t testing.TB) []Fault {
	t.Helper()
	var armed struct{ Faults []Fault }
	if err := json.Unmarshal([]byte(s.send(t, http.MethodGet, "/test/faults", "")), &armed); err != nil {
		t.Fatal(err)
	}
	return armed.Faults
}

// Reset drops all user tables and namespaces, clears faults, and sets a moved clock back. To keep the clock, post
// {"keep_clock": true} to /test/reset.
func (s *Server) Reset(t testing.TB) {
	t.Helper()
	s.Post(t, "/test/reset", "{}")
}

// Template calls fill, which creates and fills tables, and keeps them as the template. The function that it returns
// brings that back, within milliseconds: call it at the start of each test that shares the server.
func (s *Server) Template(t testing.TB, fill func()) func(t testing.TB) {
	t.Helper()
	fill()
	s.Post(t, "/test/template", "{}")
	return func(t testing.TB) {
		t.Helper()
		s.Post(t, "/test/reset", `{"template": true}`)
	}
}

// Post sends a JSON body to a path of the HTTP port and returns the answer's body. Any other status than 2xx fails
// the test.
func (s *Server) Post(t testing.TB, path, body string) string {
	t.Helper()
	return s.send(t, http.MethodPost, path, body)
}

func (s *Server) send(t testing.TB, method, path, body string) string {
	t.Helper()
	request, err := http.NewRequest(method, "http://"+s.HTTP+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	if s.Security != nil {
		token, err := os.ReadFile(s.Security.TokenText)
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
	}
	client := http.Client{Timeout: startLimit, Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Do(request)
	if err != nil {
		t.Fatalf("%v\n%s", err, s.Log())
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	if response.StatusCode/100 != 2 {
		t.Fatalf("%s %s: %s: %s", method, path, response.Status, answer)
	}
	return string(answer)
}

// Log returns what the server has logged so far.
func (s *Server) Log() string {
	return s.log.String()
}

// program finds the server's program.
func program() (string, error) {
	if name := os.Getenv("BASALT_PROGRAM"); name != "" {
		if _, err := exec.LookPath(name); err != nil {
			return "", fmt.Errorf("BASALT_PROGRAM=%s names no program: %w", name, err)
		}
		return name, nil
	}
	name, err := exec.LookPath("basalt")
	if err != nil {
		return "", fmt.Errorf("there is no program `basalt` in PATH; install it, or set BASALT_PROGRAM: %w", err)
	}
	return name, nil
}

func start(arguments, settings []string) (*Server, error) {
	name, err := program()
	if err != nil {
		return nil, err
	}
	for _, setting := range settings {
		arguments = append(arguments, "--set", setting)
	}
	server := &Server{process: exec.Command(name, arguments...), log: &log{}, ended: make(chan error, 1)}
	server.process.Stderr = server.log
	// A process that inherited the server's standard error must not keep Wait waiting.
	server.process.WaitDelay = time.Second
	output, err := server.process.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := server.process.Start(); err != nil {
		return nil, fmt.Errorf("%s does not run here: %w", name, err)
	}
	if err := server.awaitLine(output); err != nil {
		return nil, errors.Join(err, server.stop())
	}
	return server, nil
}

// awaitLine reads the line of JSON that the server prints when it accepts calls, then waits for the process's end in
// the background.
func (s *Server) awaitLine(output io.Reader) error {
	line := make(chan error, 1)
	go func() {
		text, err := bufio.NewReader(output).ReadString('\n')
		if err == nil {
			err = json.Unmarshal([]byte(text), s)
		}
		line <- err
		// Wait closes the pipe, so it comes after the read.
		s.ended <- s.process.Wait()
	}()
	select {
	case err := <-line:
		if err != nil {
			return fmt.Errorf("the server did not start: %w", err)
		}
		return nil
	case <-time.After(startLimit):
		return fmt.Errorf("the server did not start within %v:\n%s", startLimit, s.Log())
	}
}

// stop ends the server and waits until it is gone. The error has the log if the end was not clean.
func (s *Server) stop() error {
	if err := s.process.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	var err error
	select {
	case err = <-s.ended:
	case <-time.After(stopLimit):
		err = errors.Join(fmt.Errorf("the server did not stop within %v", stopLimit), s.process.Process.Kill(), <-s.ended)
	}
	if err != nil {
		return fmt.Errorf("the server ended with %w:\n%s", err, s.Log())
	}
	return nil
}

// log collects standard error, which the process's goroutine writes and tests read.
type log struct {
	mutex sync.Mutex
	text  strings.Builder
}

func (l *log) Write(bytes []byte) (int, error) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	return l.text.Write(bytes)
}

func (l *log) String() string {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	return l.text.String()
}
