package mcptool_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/goleak"

	"github.com/roost-dev/roost/internal/tool"
	"github.com/roost-dev/roost/internal/tool/mcptool"
)

// role makes the test's own program an MCP server with a way to behave.
const role = "ROOST_MCP_TEST_ROLE"

func TestMain(m *testing.M) {
	if r := os.Getenv(role); r != "" {
		play(r)
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

// server returns the configuration of the test's program in a role.
func server(name, role string, more ...string) mcptool.Server {
	exe, err := os.Executable()
	if err != nil {
		panic(err)
	}
	return mcptool.Server{
		Name: name, Command: exe, Env: append([]string{"ROOST_MCP_TEST_ROLE=" + role}, more...),
		Timeout: 10 * time.Second, StartTimeout: 10 * time.Second,
	}
}

// manager returns a manager that is closed, with nothing left, at the end of the test.
func manager(t *testing.T, servers ...mcptool.Server) *mcptool.Manager {
	t.Helper()
	return managerWith(t, mcptool.Options{Servers: servers})
}

func managerWith(t *testing.T, o mcptool.Options) *mcptool.Manager {
	t.Helper()
	m := mcptool.New(o)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		if err := m.Close(ctx); err != nil {
			t.Error(err)
		}
		if n := m.Running(); n != 0 {
			t.Errorf("%d programs are left", n)
		}
	})
	return m
}

// find returns the tool with a name.
func find(t *testing.T, m *mcptool.Manager, name string) tool.Tool {
	t.Helper()
	tools, problems := m.Tools(t.Context())
	for _, tl := range tools {
		if tl.Spec().Name == name {
			return tl
		}
	}
	t.Fatalf("no tool %s; problems: %v", name, problems)
	return nil
}

func run(t *testing.T, tl tool.Tool, input string) tool.Result {
	t.Helper()
	return tl.Run(t.Context(), tool.Call{Input: json.RawMessage(input), OutputDir: t.TempDir()}, func(tool.Progress) {})
}

// within fails the test when f takes longer than most.
func within(t *testing.T, most time.Duration, f func()) {
	t.Helper()
	start := time.Now()
	f()
	if took := time.Since(start); took > most {
		t.Errorf("took %v, at most %v wanted", took, most)
	}
}

// play is what the test's program does as a server.
func play(role string) {
	switch role {
	case "good":
		if err := goodServer().Run(context.Background(), &mcp.StdioTransport{}); err != nil {
			os.Exit(1)
		}
	case "stubborn":
		stubborn()
	default:
		raw{os.Stdin, os.Stdout}.serve(role)
	}
}

type echoInput struct {
	Text string `json:"text"`
}

func textResult(text string) *mcp.CallToolResult {
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}}
}

var picture = []byte("\x89PNG\r\n\x1a\n0000000000000000")

// goodServer is a well-behaved server with all there is to use.
func goodServer() *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "test", Version: "1"}, &mcp.ServerOptions{})
	readOnly := &mcp.ToolAnnotations{ReadOnlyHint: true}
	add := func(name string, f func(ctx context.Context, req *mcp.CallToolRequest, in echoInput) (*mcp.CallToolResult, error)) {
		mcp.AddTool(s, &mcp.Tool{Name: name, Description: "Does " + name, Annotations: readOnly},
			func(ctx context.Context, req *mcp.CallToolRequest, in echoInput) (*mcp.CallToolResult, any, error) {
				res, err := f(ctx, req, in)
				return res, nil, err
			})
	}
	add("echo", func(_ context.Context, _ *mcp.CallToolRequest, in echoInput) (*mcp.CallToolResult, error) {
		return textResult("said " + in.Text), nil
	})
	add("pid", func(context.Context, *mcp.CallToolRequest, echoInput) (*mcp.CallToolResult, error) {
		return textResult(strconv.Itoa(os.Getpid())), nil
	})
	add("env", func(context.Context, *mcp.CallToolRequest, echoInput) (*mcp.CallToolResult, error) {
		return textResult(strings.Join(os.Environ(), "\n")), nil
	})
	add("fail", func(context.Context, *mcp.CallToolRequest, echoInput) (*mcp.CallToolResult, error) {
		return nil, fmt.Errorf("it did not work")
	})
	add("die", func(context.Context, *mcp.CallToolRequest, echoInput) (*mcp.CallToolResult, error) {
		fmt.Fprintln(os.Stderr, "boom\x1b[31m!")
		os.Exit(3)
		return nil, nil
	})
	add("mixed", func(context.Context, *mcp.CallToolRequest, echoInput) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{
			Content: []mcp.Content{
				&mcp.TextContent{Text: "a\x1b[31mb\x00c\xe2\x80\xaed"},
				&mcp.ImageContent{Data: picture, MIMEType: "image/jpeg"},
				&mcp.ImageContent{Data: []byte("<svg/>"), MIMEType: "image/png"},
				&mcp.AudioContent{Data: []byte("x"), MIMEType: "audio/wav"},
				&mcp.ResourceLink{URI: "file:///x", Name: "x"},
				&mcp.EmbeddedResource{Resource: &mcp.ResourceContents{URI: "file:///y", Text: "inside"}},
			},
			StructuredContent: map[string]any{"n": 1},
		}, nil
	})
	add("huge", func(context.Context, *mcp.CallToolRequest, echoInput) (*mcp.CallToolResult, error) {
		return textResult(strings.Repeat("0123456789\n", 100_000)), nil
	})
	// wait reports progress, then waits to be cancelled and tells a file that it was.
	add("wait", func(ctx context.Context, req *mcp.CallToolRequest, in echoInput) (*mcp.CallToolResult, error) {
		if err := req.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{
			ProgressToken: req.Params.GetProgressToken(), Progress: 3, Total: 10, Message: "half\x1b[1m way",
		}); err != nil {
			return nil, err
		}
		<-ctx.Done()
		return nil, os.WriteFile(in.Text, []byte("cancelled"), 0o600)
	})
	add("grow", func(_ context.Context, _ *mcp.CallToolRequest, in echoInput) (*mcp.CallToolResult, error) {
		add(in.Text, func(context.Context, *mcp.CallToolRequest, echoInput) (*mcp.CallToolResult, error) {
			return textResult("I am " + in.Text), nil
		})
		return textResult("grown"), nil
	})
	s.AddResource(&mcp.Resource{URI: "test://one", Name: "one", Description: "the first", MIMEType: "text/plain"},
		func(context.Context, *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
			return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: "test://one", Text: "content of one"}}}, nil
		})
	s.AddPrompt(&mcp.Prompt{Name: "greet", Description: "Greets", Arguments: []*mcp.PromptArgument{{Name: "who", Required: true}}},
		func(_ context.Context, req *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
			return &mcp.GetPromptResult{Messages: []*mcp.PromptMessage{{Role: "user", Content: &mcp.TextContent{Text: "Hello " + req.Params.Arguments["who"]}}}}, nil
		})
	return s
}

// stubborn ignores every way to be asked to end, and leaves a child that does too. It tells
// a file both process ids.
func stubborn() {
	signal.Ignore(syscall.SIGTERM, syscall.SIGPIPE)
	if os.Getenv("CHILD") == "" {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), "CHILD=1")
		cmd.Stdout = os.Stdout
		if err := cmd.Start(); err != nil {
			os.Exit(1)
		}
		if err := os.WriteFile(os.Getenv("PIDS"), fmt.Appendf(nil, "%d %d", os.Getpid(), cmd.Process.Pid), 0o600); err != nil {
			os.Exit(1)
		}
		raw{os.Stdin, os.Stdout}.serve("plain")
	}
	select {}
}

// raw speaks the protocol by hand, badly where its role says so.
type raw struct {
	in  io.Reader
	out io.Writer
}

type question struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
}

const (
	helloResult = `{"protocolVersion":"2025-11-25","capabilities":{"tools":{"listChanged":true},"resources":{}},"serverInfo":{"name":"raw","version":"1"}}`
	listResult  = `{"tools":[{"name":"go","inputSchema":{"type":"object"}}]}`
	callAnswer  = `{"content":[{"type":"text","text":"done"}]}`
)

func (r raw) answer(id json.RawMessage, result string) {
	fmt.Fprintf(r.out, `{"jsonrpc":"2.0","id":%s,"result":%s}`+"\n", id, result)
}

// serve plays "PHASE-FAULT", a fault in the phase start, initialize, list or call, "plain",
// or one of the roles below.
func (r raw) serve(role string) {
	phase, fault, _ := strings.Cut(role, "-")
	r.misbehave(phase, fault, "start")
	lines := bufio.NewScanner(r.in)
	lines.Buffer(nil, 32<<20)
	for lines.Scan() {
		var q question
		if json.Unmarshal(lines.Bytes(), &q) != nil || q.ID == nil {
			continue
		}
		switch q.Method {
		case "initialize":
			r.misbehave(phase, fault, "initialize")
			if role == "modern" {
				fmt.Fprintf(r.out, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no"}}`+"\n", q.ID)
				continue
			}
			r.answer(q.ID, helloResult)
		case "server/discover":
			if role != "modern" {
				os.Exit(4) // as some servers do at anything but the handshake they know
			}
			r.answer(q.ID, `{"supportedVersions":["2026-07-28"],"capabilities":{"tools":{}}}`)
		case "tools/list":
			r.misbehave(phase, fault, "list")
			r.answer(q.ID, orElse(os.Getenv("LIST"), listResult))
		case "tools/call":
			r.misbehave(phase, fault, "call")
			r.answer(q.ID, orElse(os.Getenv("CALL"), callAnswer))
		default:
			fmt.Fprintf(r.out, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no"}}`+"\n", q.ID)
		}
	}
}

func orElse(s, other string) string {
	if s == "" {
		return other
	}
	return s
}

func (r raw) misbehave(phase, fault, now string) {
	if phase != now {
		return
	}
	out := bufio.NewWriterSize(r.out, 64<<10)
	endless := func(text string) {
		text = strings.Repeat(text, 1000)
		for {
			if _, err := out.WriteString(text); err != nil {
				os.Exit(1)
			}
		}
	}
	switch fault {
	case "hang":
		select {}
	case "die":
		fmt.Fprintln(os.Stderr, "boom\x1b[31m!")
		os.Exit(3)
	case "close": // its output, and lives on
		_ = os.Stdout.Close()
		select {}
	case "garbage":
		endless("this is no protocol\n")
	case "somegarbage":
		fmt.Fprint(r.out, "Welcome to the server!\n\n{\"level\":\"info\"}\n[1,2]\n{\"jsonrpc\":\"1.0\"}\n\xff\xfe\n")
	case "line":
		endless("x")
	case "deep":
		endless("[")
	case "notices":
		endless(`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"x"}}` + "\n")
	case "somenotices":
		for range 3000 {
			fmt.Fprintln(r.out, `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"1","progress":1}}`)
		}
	case "trap": // notices without their parameters
		for _, m := range []string{"elicitation/complete", "progress", "message", "resources/updated", "tools/list_changed", "cancelled", "nonsense"} {
			fmt.Fprintf(r.out, `{"jsonrpc":"2.0","method":"notifications/%s"}`+"\n", m)
		}
	case "pings":
		for i := 0; ; i++ {
			fmt.Fprintf(out, `{"jsonrpc":"2.0","id":"p%d","method":"ping"}`+"\n", i)
		}
	case "stderr":
		go func() {
			for {
				fmt.Fprintln(os.Stderr, strings.Repeat("noise ", 1000))
			}
		}()
	case "huge":
		fmt.Fprintf(out, `{"jsonrpc":"2.0","id":99,"result":{"x":"%s"}}`+"\n", strings.Repeat("y", 8<<20))
		_ = out.Flush()
	}
}
