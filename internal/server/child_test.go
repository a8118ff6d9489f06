package server

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/goleak"

	"github.com/roost-dev/roost/client/pi"
	"github.com/roost-dev/roost/internal/config"
	"github.com/roost-dev/roost/internal/piwire"
	"github.com/roost-dev/roost/internal/sandbox"
)

// childDir makes the test binary a server in this directory, so that tests can kill a real
// process.
const childDir = "ROOST_TEST_SERVER_DIR"

// childMCP makes the test binary a server of the Model Context Protocol.
const childMCP = "ROOST_TEST_MCP"

func serveMCP() {
	server := mcp.NewServer(&mcp.Implementation{Name: "test", Version: "1"}, nil)
	type greeting struct {
		Name string `json:"name"`
	}
	mcp.AddTool(server, &mcp.Tool{Name: "greet"}, func(_ context.Context, _ *mcp.CallToolRequest, in greeting) (*mcp.CallToolResult, any, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "hello " + in.Name}}}, nil, nil
	})
	_ = server.Run(context.Background(), &mcp.StdioTransport{}) // ends with its input
}

func TestMain(m *testing.M) {
	if handled, code := sandbox.Main(os.Args); handled {
		os.Exit(code)
	}
	if os.Getenv(childMCP) != "" {
		serveMCP()
		return
	}
	if dir := os.Getenv(childDir); dir != "" {
		if err := serveChild(dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	goleak.VerifyTestMain(m)
}

func serveChild(dir string) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // as in cmd/roost
	cfg, err := config.Load(filepath.Join(dir, "roost.yaml"))
	if err != nil {
		return err
	}
	listen := "127.0.0.1:0"
	if same, err := os.ReadFile(filepath.Join(dir, "listen")); err == nil { // after a restart, where clients look for it
		listen = string(same)
	}
	return Run(ctx, Options{
		Config: cfg, DataDir: filepath.Join(dir, "data"), Socket: filepath.Join(dir, "s"), Listen: listen, Dir: dir,
		Logger: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelDebug})),
	}, os.Stdout)
}

// home is the directory of a server that comes and goes.
type home struct {
	t   testing.TB
	dir string
	cmd *exec.Cmd
	url string
}

// newHome makes a directory with a configuration whose model follows a script.
func newHome(t testing.TB, script string) *home {
	t.Helper()
	dir, err := os.MkdirTemp("", "roost") //nolint:usetesting // t.TempDir is too long for the path of a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	h := &home{t: t, dir: dir}
	h.write("script.yaml", script)
	h.write("roost.yaml", `
providers:
  test:
    api: scripted
    script: `+filepath.Join(dir, "script.yaml")+`
    models: [{id: m}]
default_model: test/m
pi: {prompt_response: accepted}
`)
	return h
}

func (h *home) write(name, text string) {
	h.t.Helper()
	if err := os.WriteFile(filepath.Join(h.dir, name), []byte(text), 0o600); err != nil {
		h.t.Fatal(err)
	}
}

// start runs a server process and waits until it is ready.
func (h *home) start() {
	h.t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childDir+"="+h.dir)
	errors, err := os.OpenFile(filepath.Join(h.dir, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		h.t.Fatal(err)
	}
	defer errors.Close()
	cmd.Stderr = errors
	out, err := cmd.StdoutPipe()
	if err != nil {
		h.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		h.t.Fatal(err)
	}
	h.cmd = cmd
	h.t.Cleanup(func() { h.stop(syscall.SIGKILL) })
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if strings.HasPrefix(lines.Text(), "ready ") {
			for word := range strings.FieldsSeq(lines.Text()) {
				if url, ok := strings.CutPrefix(word, "http="); ok {
					h.url = url
				}
			}
			h.write("listen", strings.TrimPrefix(h.url, "http://"))
			return
		}
	}
	text, _ := os.ReadFile(filepath.Join(h.dir, "log"))
	h.t.Fatalf("the server did not become ready:\n%s", text)
}

// stop ends the process with a signal and waits for its end.
func (h *home) stop(signal os.Signal) {
	if h.cmd == nil {
		return
	}
	_ = h.cmd.Process.Signal(signal)
	_ = h.cmd.Wait()
	h.cmd = nil
}

func (h *home) restart() {
	h.t.Helper()
	h.stop(syscall.SIGKILL)
	h.start()
}

func (h *home) dial() *pi.Client {
	h.t.Helper()
	c, err := pi.Dial(h.context(), filepath.Join(h.dir, "s"))
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(c.Close)
	return c
}

func (h *home) context() context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	h.t.Cleanup(cancel)
	return ctx
}

// create makes a session and prompts it.
func (h *home) create(c *pi.Client, prompt string) string {
	h.t.Helper()
	s, err := c.Session(h.context(), &piwire.Create{Cwd: h.dir})
	if err != nil {
		h.t.Fatal(err)
	}
	h.do(c, &piwire.Prompt{SessionID: s.ID, Text: prompt})
	return s.ID
}

func (h *home) do(c *pi.Client, cmd piwire.Command) {
	h.t.Helper()
	if _, err := c.Do(h.context(), cmd); err != nil {
		h.t.Fatalf("%s: %v", cmd.CommandName(), err)
	}
}

// until waits until a session's view satisfies f.
func (h *home) until(c *pi.Client, id, what string, f func(*pi.View) bool) {
	h.t.Helper()
	if err := c.Until(h.context(), id, f); err != nil {
		if errors.Is(err, context.DeadlineExceeded) {
			err = errors.New("not within a minute")
		}
		c.With(id, func(v *pi.View) { h.t.Logf("the view is:\n%s", tell(v)) })
		h.t.Fatalf("%s: %v", what, err)
	}
}

func idle(v *pi.View) bool { return v.Snapshot.Phase == piwire.PhaseIdle }

// attach shows a session to a client that knows nothing.
func (h *home) attach(c *pi.Client, id string) {
	h.t.Helper()
	h.do(c, &piwire.Attach{SessionID: id})
}

// tell is a transcript, a line for each item.
func tell(v *pi.View) string {
	var b strings.Builder
	for _, i := range v.Transcript() {
		switch i := i.(type) {
		case *piwire.UserItem:
			fmt.Fprintf(&b, "user: %s\n", text(i.Content))
		case *piwire.AssistantItem:
			fmt.Fprintf(&b, "assistant %s: %s\n", i.Status, text(i.Content))
		case *piwire.ToolItem:
			fmt.Fprintf(&b, "%s %s: %s\n", i.ToolName, i.Status, text(i.Content))
		}
	}
	return b.String()
}

func text(blocks []piwire.Block) string {
	var parts []string
	for _, b := range blocks {
		switch b := b.(type) {
		case *piwire.Text:
			parts = append(parts, b.Text)
		case *piwire.Thinking:
			parts = append(parts, "("+b.Thinking+")")
		case *piwire.ToolCall:
			parts = append(parts, "call "+b.ToolName)
		}
	}
	return strings.Join(parts, " ")
}
