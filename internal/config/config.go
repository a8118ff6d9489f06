// Package config reads what the user has decided: one strict YAML file, or, without a
// file, the environment. It is read once by the composition root, before anything opens,
// and hands every other part plain checked values.
//
//	file ──parse──▶ YAML nodes ──decode, expand ${NAME}, check──▶ Config
//
// Only the user's own file counts; roost never reads a configuration from a project,
// because configuration can name programs to run.
package config

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/roost-dev/roost/internal/session"
)

// MaxFile is the largest configuration file that is read, in bytes.
const MaxFile = 256 << 10

// Config is a checked configuration. It is never changed after it was returned, so it may
// be shared between goroutines.
type Config struct {
	Path string // the file it came from; empty when it came from the environment

	Providers []Provider // in the order of the file, never empty, names unique

	// DefaultModel is the model of new sessions that name none. Its provider is one of
	// Providers. It is zero when nothing names a model, neither the file nor a provider's
	// list; the catalogue chooses then, among the models of the first provider.
	DefaultModel    session.ModelRef
	DefaultThinking session.Thinking

	// Aliases are further names of models, by which clients with names of their own find one. The
	// provider of each model is one of Providers.
	Aliases map[string]session.ModelRef

	Workspace Workspace
	Pi        Pi
	Cursor    Cursor
	Limits    Limits
	Retention Retention
	HTTP      HTTP
	Log       Log

	MCPServers  []MCPServer // in the order of the file, names unique
	Permissions Permissions
	Hooks       Hooks
	Compaction  Compaction
	Subagents   Subagents
	Web         Web
	Prompt      Prompt

	// KeyEnv names the environment variables that hold keys: those expanded in api_key,
	// headers and the env of MCP servers. Programs that sessions run must not see them.
	// Sorted, unique.
	KeyEnv []string

	// Warnings are for the person who starts the server. They hold no secrets.
	Warnings []string
}

// Workspace says where sessions work.
type Workspace struct {
	Confine    bool   // tools cannot leave a session's directory
	DefaultDir string // absolute; empty for the server's own working directory
}

// Pi holds the settings of the pi front end.
type Pi struct {
	PromptResponse PromptResponse
}

// PromptResponse is when the pi front end answers a prompt.
type PromptResponse string

// The moments at which a prompt is answered.
const (
	PromptSettled  PromptResponse = "settled"  // when the run has ended
	PromptAccepted PromptResponse = "accepted" // when the prompt is in the event log
)

// Cursor holds the settings of the front end for Cursor clients.
type Cursor struct {
	// EventStreamClients are the types of client whose streams are answered with the content type
	// text/event-stream; stock clients refuse it.
	EventStreamClients []string
	// LocalTools lets a prompt of another client, in a session that a Cursor client began, use the
	// tools of this machine if the session's directory is here.
	LocalTools bool
}

// Limits bounds what clients can make the server hold.
type Limits struct {
	Sessions    int           // sessions in memory at once, 1 to 1,000,000
	Connections int           // client connections at once over all listeners, 1 to 100,000
	BodyBytes   int64         // body of one HTTP request, 64 KiB to 256 MiB
	IdleUnload  time.Duration // an idle session leaves memory after it, 1 s to 720 h
	Heartbeat   time.Duration // between signs of life of a watch in which nothing happens, 1 s to 5 min
}

// Retention says which idle sessions are removed, the longest unused first. Zero values keep all.
type Retention struct {
	Sessions int           // how many sessions are kept, 1 to 1,000,000
	Age      time.Duration // how long a session is kept after it was used last, 1 h to 87600 h
	Size     int64         // bytes that the sessions have together, 1 MiB to 1024 GiB
}

// HTTP holds the settings of the HTTP listener beyond its address.
type HTTP struct {
	Origins      []string // further allowed origins, "scheme://host[:port]" as browsers write them
	Hosts        []string // further allowed Host names, lower case, "name" or "name:port"
	Tokens       []Token  // further client tokens, names unique
	InsecureBind bool     // other addresses than loopback are allowed without TLS
}

// Token is a client's token, of which only the digest is known.
type Token struct {
	Name   string
	SHA256 [32]byte
}

// Log says what is logged and how.
type Log struct {
	Level  slog.Level
	Format LogFormat
}

// LogFormat is the form of a log record.
type LogFormat string

// The forms of a log record.
const (
	LogText LogFormat = "text"
	LogJSON LogFormat = "json"
)

// Compaction says when and how a long conversation is shortened.
type Compaction struct {
	Auto    bool // without being asked, when the context is nearly full
	Reserve int  // tokens of the context kept free for the answer, 1,000 to 1,000,000
	Keep    int  // tokens of the newest messages that stay as they are, 0 to 1,000,000
}

// Subagents bounds the sessions that sessions start.
type Subagents struct {
	Depth    int // levels below a client's session, 0 (none) to 8
	Parallel int // at once below one session, 1 to 64
}

// Web holds the settings of the tools that read web pages and find them.
type Web struct {
	Fetch        bool // the tool that reads is offered
	AllowPrivate bool // it may reach private and loopback addresses
	Search       Search
}

// Prompt says what the model is told beyond roost's own instructions.
type Prompt struct {
	UserRules string // absolute path of a Markdown file; empty for none
}

// defaults returns the configuration that an empty file describes, without providers.
func defaults() *Config {
	return &Config{
		DefaultThinking: session.ThinkingMedium,
		Workspace:       Workspace{Confine: true},
		Pi:              Pi{PromptResponse: PromptSettled},
		Cursor:          Cursor{LocalTools: true},
		Limits: Limits{
			Sessions:    10_000,
			Connections: 1024,
			BodyBytes:   16 << 20,
			IdleUnload:  time.Minute,
			Heartbeat:   10 * time.Second,
		},
		Log:         Log{Level: slog.LevelInfo, Format: LogText},
		Permissions: Permissions{Default: ActionAllow, WithoutClient: ActionDeny, AskTimeout: 168 * time.Hour, Sandbox: SandboxOff},
		Compaction:  Compaction{Auto: true, Reserve: 16_384, Keep: 20_000},
		Subagents:   Subagents{Depth: 2, Parallel: 4},
		Web:         Web{Fetch: true},
	}
}

// Provider returns the provider with a name, and whether there is one.
func (c *Config) Provider(name string) (Provider, bool) {
	for _, p := range c.Providers {
		if p.Name == name {
			return p, true
		}
	}
	return Provider{}, false
}

// Load reads and checks a file with the environment of the process. A file that is wrong
// gives an [*Error] with every problem found; a file that is missing an error that is
// [fs.ErrNotExist].
func Load(path string) (*Config, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("configuration %s: %w", path, err)
	}
	data, info, err := readRegular(abs, MaxFile)
	if err != nil {
		return nil, fmt.Errorf("configuration %s: %w", path, err)
	}
	c, err := Parse(abs, data, os.Getenv)
	if err != nil {
		return nil, err
	}
	if info.Mode().Perm()&0o022 != 0 {
		c.Warnings = append(c.Warnings, fmt.Sprintf("%s can be written by other users, who could make roost run programs; run: chmod go-w %s", abs, abs))
	}
	return c, nil
}

var (
	errNotRegular = errors.New("not a regular file")
	errTooLarge   = errors.New("file is too large")
)

// readRegular reads a file of at most limit bytes. It looks before it opens, because
// opening a named pipe would wait for a writer.
func readRegular(path string, limit int64) ([]byte, fs.FileInfo, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, nil, errNotRegular
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err != nil {
		return nil, nil, err
	}
	if int64(len(data)) > limit {
		return nil, nil, fmt.Errorf("%w: at most %d bytes are read", errTooLarge, limit)
	}
	return data, info, nil
}
