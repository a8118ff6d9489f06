package server

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/roost-dev/roost/internal/config"
	"github.com/roost-dev/roost/internal/session"
	"github.com/roost-dev/roost/internal/tool"
	"github.com/roost-dev/roost/internal/tool/mcptool"
)

// projectFile is where a project names its MCP servers. They are programs to run, so they
// count only when the user has trusted this very content.
const projectFile = ".mcp.json"

// trustFile, in the data directory, maps the path of a project's file to the hash of the
// content that the user has trusted.
const trustFile = "trust.json"

// mcpServers are the MCP servers of the configuration, which every session has, and those of
// trusted projects. It is safe for concurrent use.
type mcpServers struct {
	dataDir string
	version string
	log     *slog.Logger
	consent *consent // nil when no server is an address
	own     *mcptool.Manager

	mu       sync.Mutex
	projects map[string]projectServers
	closed   bool
}

// projectServers are the servers of one content of one project's file.
type projectServers struct {
	hash    string
	manager *mcptool.Manager
}

func openMCP(cfg *config.Config, dataDir, version string, log *slog.Logger) (*mcpServers, error) {
	m := &mcpServers{dataDir: dataDir, version: version, log: log, projects: make(map[string]projectServers)}
	if slices.ContainsFunc(cfg.MCPServers, func(s config.MCPServer) bool { return s.URL != "" && !s.Disabled }) {
		var err error
		if m.consent, err = openConsent(log); err != nil {
			return nil, err
		}
	}
	m.own = m.manager(cfg.MCPServers, "")
	return m, nil
}

func (m *mcpServers) manager(list []config.MCPServer, dir string) *mcptool.Manager {
	var servers []mcptool.Server
	for _, c := range list {
		if c.Disabled {
			continue
		}
		s := mcptool.Server{
			Name: c.Name, Command: c.Command, Args: c.Args, Dir: dir, URL: c.URL, Timeout: c.Timeout, StartTimeout: c.StartTimeout,
			MaxOutput: int(c.MaxOutput), Tools: c.Tools, TrustAnnotations: c.TrustAnnotations,
		}
		for _, e := range c.Env {
			s.Env = append(s.Env, e.Name+"="+e.Value.Reveal())
		}
		if len(c.Headers) > 0 {
			s.Headers = make(http.Header)
		}
		for _, h := range c.Headers {
			s.Headers.Set(h.Name, h.Value.Reveal())
		}
		servers = append(servers, s)
	}
	opt := mcptool.Options{Servers: servers, Logger: m.log, DataDir: m.dataDir, Version: m.version}
	if m.consent != nil {
		opt.Authorize, opt.RedirectURL = m.consent.authorize, m.consent.address()
	}
	return mcptool.New(opt)
}

// tools returns what the servers offer to a session.
func (m *mcpServers) tools(ctx context.Context, s *session.State) []tool.Tool {
	tools, problems := m.own.Tools(ctx)
	if p := m.ofProject(s.Cwd); p != nil {
		more, wrong := p.Tools(ctx)
		tools, problems = append(tools, more...), append(problems, wrong...)
	}
	for _, p := range problems {
		m.log.Warn("MCP server", slog.String("server", p.Server), slog.Any("error", p.Err))
	}
	return tools
}

// ofProject returns the manager of a project's own servers, nil when it has none or the user
// has not trusted them.
func (m *mcpServers) ofProject(dir string) *mcptool.Manager {
	path := filepath.Join(dir, projectFile)
	data, err := os.ReadFile(path)
	if err != nil {
		return nil
	}
	hash := config.TrustHash(data)
	if m.trusted()[path] != hash {
		m.log.Info("MCP servers of a project are not trusted; see roost trust", slog.String("file", path))
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	old, ok := m.projects[path]
	if ok && old.hash == hash || m.closed {
		return old.manager
	}
	servers, err := config.ParseMCP(path, data, nil)
	if err != nil {
		m.log.Warn("MCP servers of a project", slog.Any("error", err))
	}
	if ok {
		go old.manager.Close(context.Background()) //nolint:errcheck // its servers end, or are ended
	}
	m.projects[path] = projectServers{hash: hash, manager: m.manager(servers, dir)}
	return m.projects[path].manager
}

// trusted reads what the user has trusted.
func (m *mcpServers) trusted() map[string]string {
	trust, err := readTrust(m.dataDir)
	if err != nil {
		m.log.Warn("trust cannot be read", slog.Any("error", err))
	}
	return trust
}

func readTrust(dataDir string) (map[string]string, error) {
	trust := make(map[string]string)
	text, err := os.ReadFile(filepath.Join(dataDir, trustFile))
	if errors.Is(err, fs.ErrNotExist) {
		return trust, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &trust)
	}
	return trust, err
}

// Trust lets the MCP servers of a project count for the sessions in its directory, as long as
// its file stays as it is. It returns the servers' names and what they run.
func Trust(dataDir, projectDir string) ([]string, error) {
	path, err := filepath.Abs(filepath.Join(projectDir, projectFile))
	if err != nil {
		return nil, err
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	servers, err := config.ParseMCP(path, data, nil)
	if err != nil {
		return nil, err
	}
	trust, err := readTrust(dataDir)
	if err != nil {
		return nil, err
	}
	trust[path] = config.TrustHash(data)
	if err := os.MkdirAll(dataDir, 0o700); err != nil {
		return nil, err
	}
	var names []string
	for _, s := range servers {
		what := s.URL
		if what == "" {
			what = strings.Join(append([]string{s.Command}, s.Args...), " ")
		}
		names = append(names, s.Name+": "+what)
	}
	return names, writeJSON(filepath.Join(dataDir, trustFile), trust)
}

// close ends every server.
func (m *mcpServers) close(ctx context.Context) error {
	m.mu.Lock()
	m.closed = true
	managers := []*mcptool.Manager{m.own}
	for _, p := range m.projects {
		managers = append(managers, p.manager)
	}
	m.mu.Unlock()
	var errs []error
	if m.consent != nil {
		errs = append(errs, m.consent.close(ctx))
	}
	for _, manager := range managers {
		errs = append(errs, manager.Close(ctx))
	}
	return errors.Join(errs...)
}
