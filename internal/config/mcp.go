package config

import (
	"errors"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"
)

// MCPServer is a server of the Model Context Protocol: a program that is started and spoken
// to over its standard streams, or an address. Exactly one of Command and URL is set.
type MCPServer struct {
	Name    string // 1 to 64 of [A-Za-z0-9._-], begins with a letter or digit
	Command string // a program, found in PATH unless it is a path
	Args    []string
	Env     []EnvVar // added to a minimal environment, names unique
	URL     string   // http or https, without user and fragment
	Headers []Header // sent with every request to URL's own host

	Disabled         bool
	Timeout          time.Duration // of one call, 1 s to 24 h
	StartTimeout     time.Duration // until the server has said what it offers, 100 ms to 10 min
	MaxOutput        int64         // bytes of text of one result, 1 KiB to 48 KiB
	Tools            []string      // the only tools that are offered; nil for all
	TrustAnnotations bool          // what the server says about its tools' effects is believed
}

// EnvVar is a variable for a program. The value may hold a key, so it never prints.
type EnvVar struct {
	Name  string
	Value Secret
}

// What a server gets that says nothing else. MaxOutput is smaller than what roost's own
// tools may return, because a model reads it as a whole and every turn again.
const (
	DefaultMCPTimeout      = 60 * time.Second
	DefaultMCPStartTimeout = 30 * time.Second
	DefaultMCPMaxOutput    = 32 << 10
)

// maxMCPServers bounds the servers of one file.
const maxMCPServers = 100

var (
	mcpName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)

	errMCPName    = errors.New("must be 1 to 64 letters, digits, '.', '_' and '-'")
	errMCPKind    = errors.New("needs either command, for a program, or url, for an address")
	errMCPURL     = errors.New("must be a URL such as https://host/mcp")
	errMCPURLUser = errors.New("must not hold a user or password; use headers")
	errEnvName    = errors.New("is not the name of an environment variable")
)

func newMCPServer(name string) MCPServer {
	return MCPServer{Name: name, Timeout: DefaultMCPTimeout, StartTimeout: DefaultMCPStartTimeout, MaxOutput: DefaultMCPMaxOutput}
}

func (d *decoder) mcpServers(dst *[]MCPServer, v value) {
	d.entries(v, func(name string, entry, at value) {
		switch {
		case !mcpName.MatchString(name):
			d.problemf(at, "server name %s %v", quote(name), errMCPName)
		case len(*dst) == maxMCPServers:
			d.problemf(at, "more than %d servers", maxMCPServers)
		default:
			*dst = append(*dst, d.mcpServer(name, entry))
		}
	})
}

func (d *decoder) mcpServer(name string, v value) MCPServer {
	s := newMCPServer(name)
	before := len(d.problems)
	d.mapping(v, fields{
		"command":           d.str(&s.Command),
		"args":              func(v value) { d.list(v, func(v value) { d.argument(&s.Args, v) }) },
		"env":               func(v value) { d.envVars(&s.Env, v) },
		"url":               func(v value) { d.mcpURL(&s.URL, v) },
		"headers":           func(v value) { d.headers(&s.Headers, v) },
		"disabled":          d.boolean(&s.Disabled),
		"timeout":           d.duration(&s.Timeout, time.Second, 24*time.Hour),
		"start_timeout":     d.duration(&s.StartTimeout, 100*time.Millisecond, 10*time.Minute),
		"max_output":        d.size(&s.MaxOutput, 1<<10, 48<<10),
		"tools":             func(v value) { s.Tools = d.toolNames(v) },
		"trust_annotations": d.boolean(&s.TrustAnnotations),
	})
	if len(d.problems) > before {
		return s
	}
	if err := s.check(); err != nil {
		d.problemf(v, "%v", err)
	}
	if cleartext(s.URL) && len(s.Headers) > 0 {
		d.warnf("mcp server %s: its headers are sent unencrypted; use an https address", name)
	}
	return s
}

// check says what does not fit together.
func (s *MCPServer) check() error {
	switch {
	case (s.Command == "") == (s.URL == ""):
		return errMCPKind
	case s.URL != "" && (len(s.Args) > 0 || len(s.Env) > 0):
		return errors.New("args and env have a meaning for a command only")
	case s.Command != "" && len(s.Headers) > 0:
		return errors.New("headers have a meaning for a url only")
	}
	return nil
}

// argument appends an argument of a program. It may be empty.
func (d *decoder) argument(dst *[]string, v value) {
	s, _, ok := d.text(v, nil)
	if ok && strings.ContainsRune(s, 0) {
		d.problemf(v, "has a NUL character")
		return
	}
	*dst = append(*dst, s)
}

func (d *decoder) envVars(dst *[]EnvVar, v value) {
	d.entries(v, func(name string, entry, at value) {
		if !envName(name) {
			d.problemf(at, "%s %v", quote(name), errEnvName)
			return
		}
		s, _, ok := d.text(entry, &d.keyEnv)
		switch {
		case !ok:
		case strings.ContainsRune(s, 0):
			d.problemf(entry, "has a NUL character")
		default:
			*dst = append(*dst, EnvVar{Name: name, Value: NewSecret(s)})
		}
	})
}

func (d *decoder) mcpURL(dst *string, v value) {
	var s string
	if d.str(&s)(v); s == "" {
		return
	}
	if err := checkMCPURL(s); err != nil {
		d.problemf(v, "%v", err)
		return
	}
	*dst = s
}

// checkMCPURL checks the address of a server, which unlike a provider's may have a query.
func checkMCPURL(s string) error {
	u, err := url.Parse(s)
	switch {
	case err != nil, u.Scheme != "http" && u.Scheme != "https", u.Opaque != "", strings.Contains(s, "#"):
		return errMCPURL
	case u.User != nil:
		return errMCPURLUser
	}
	if _, err := parseHost(u.Host); err != nil {
		return errMCPURL
	}
	return nil
}

// toolNames decodes a list of different names, at least one.
func (d *decoder) toolNames(v value) []string {
	names := []string{}
	before := len(d.problems)
	d.list(v, func(v value) {
		var s string
		d.str(&s)(v)
		if s != "" && slices.Contains(names, s) {
			d.problemf(v, "is given twice")
		}
		names = append(names, s)
	})
	if len(names) == 0 && len(d.problems) == before {
		d.problemf(v, "is empty; give at least one, remove the key for all, or set disabled: true")
	}
	return names
}
