package config

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// TrustHash identifies the content of a project's file. Trust that a user gives to a file
// is bound to it, so that a change of a single byte asks again.
func TrustHash(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// projectServer is what counts in an entry of .mcp.json.
type projectServer struct {
	Type     string            `json:"type"`
	Command  string            `json:"command"`
	Args     []string          `json:"args"`
	Env      map[string]string `json:"env"`
	URL      string            `json:"url"`
	Headers  map[string]string `json:"headers"`
	Disabled bool              `json:"disabled"`
}

var errNoVariables = errors.New("${NAME} is not replaced in a project's file; put this server into your own configuration")

// ParseMCP reads a project's .mcp.json, {"mcpServers": {NAME: {…}}}, of at most [MaxFile]
// bytes. Keys it does not know are passed over, because other programs write the file. It
// returns the servers that are right, by name, and an [*Error] about all the others.
//
// The servers are programs to run: use them only when the user trusts the file, which
// [TrustHash] identifies. With getenv nil, which is right for a project's file, a value
// with ${NAME} is a problem: it would hand the user's keys to whom the project names.
func ParseMCP(path string, data []byte, getenv func(string) string) ([]MCPServer, error) {
	var file struct {
		Servers map[string]json.RawMessage `json:"mcpServers"`
	}
	if len(data) > MaxFile {
		return nil, newError(path, []Problem{{Text: fmt.Sprintf("is larger than %d bytes", MaxFile)}})
	}
	if err := json.Unmarshal(bytes.TrimPrefix(data, []byte("\xef\xbb\xbf")), &file); err != nil {
		return nil, newError(path, []Problem{jsonProblem(data, err)})
	}
	var (
		servers  []MCPServer
		problems []Problem
	)
	for _, name := range slices.Sorted(maps.Keys(file.Servers)) {
		s, err := projectMCP(name, file.Servers[name], getenv)
		if err == nil && len(servers) == maxMCPServers {
			err = fmt.Errorf("more than %d servers", maxMCPServers)
		}
		if err != nil {
			problems = append(problems, Problem{Text: "mcpServers." + quote(name) + ": " + err.Error()})
			continue
		}
		servers = append(servers, s)
	}
	if len(problems) > 0 {
		return servers, newError(path, problems)
	}
	return servers, nil
}

// jsonProblem says where JSON is wrong, without quoting it.
func jsonProblem(data []byte, err error) Problem {
	p := Problem{Text: `must be {"mcpServers": {NAME: {...}}}`}
	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
		before := data[:min(max(syntax.Offset-1, 0), int64(len(data)))]
		p.Text = "not valid JSON"
		p.Line = bytes.Count(before, []byte("\n")) + 1
		p.Column = len(before) - bytes.LastIndexByte(before, '\n')
	}
	return p
}

func projectMCP(name string, data json.RawMessage, getenv func(string) string) (MCPServer, error) {
	s := newMCPServer(name)
	var in projectServer
	if !mcpName.MatchString(name) {
		return s, fmt.Errorf("the name %w", errMCPName)
	}
	if err := json.Unmarshal(data, &in); err != nil {
		if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok && wrong.Field != "" {
			return s, fmt.Errorf("%s has the wrong type: %s", wrong.Field, wrong.Value)
		}
		return s, errors.New("must be an object")
	}
	switch in.Type {
	case "", "stdio", "http", "streamable-http", "streamableHttp":
	default:
		return s, fmt.Errorf("type %s is not supported; use stdio or http", quote(in.Type))
	}
	if err := in.expand(getenv); err != nil {
		return s, err
	}
	s.Command, s.Args, s.URL, s.Disabled = in.Command, in.Args, in.URL, in.Disabled
	for _, key := range slices.Sorted(maps.Keys(in.Env)) {
		s.Env = append(s.Env, EnvVar{key, NewSecret(in.Env[key])})
	}
	for _, key := range slices.Sorted(maps.Keys(in.Headers)) {
		s.Headers = append(s.Headers, Header{key, NewSecret(in.Headers[key])})
	}
	return s, errors.Join(in.checkTexts(), s.check())
}

// expand replaces variables in every value, or refuses them.
func (in *projectServer) expand(getenv func(string) string) error {
	one := func(where string, s string) (string, error) {
		if getenv == nil {
			if strings.Contains(s, "${") {
				return "", fmt.Errorf("%s: %w", where, errNoVariables)
			}
			return s, nil
		}
		out, _, err := expand(s, getenv)
		if err != nil {
			return "", fmt.Errorf("%s: %w", where, err)
		}
		return out, nil
	}
	var errs [5]error
	in.Command, errs[0] = one("command", in.Command)
	in.URL, errs[1] = one("url", in.URL)
	for i, s := range in.Args {
		var err error
		in.Args[i], err = one("args", s)
		errs[2] = errors.Join(errs[2], err)
	}
	for i, m := range []map[string]string{in.Env, in.Headers} {
		for key, s := range m {
			out, err := one([]string{"env", "headers"}[i], s)
			m[key], errs[3+i] = out, errors.Join(errs[3+i], err)
		}
	}
	return errors.Join(errs[:]...)
}

// checkTexts says which value cannot be used as what it is.
func (in *projectServer) checkTexts() error {
	if in.URL != "" {
		if err := checkMCPURL(in.URL); err != nil {
			return fmt.Errorf("url %w", err)
		}
	}
	for _, s := range append([]string{in.Command}, in.Args...) {
		if strings.ContainsRune(s, 0) {
			return errors.New("command and args must not have NUL characters")
		}
	}
	for key, s := range in.Env {
		if !envName(key) || strings.ContainsRune(s, 0) {
			return fmt.Errorf("env: %s %w, or its value has a NUL character", quote(key), errEnvName)
		}
	}
	seen := map[string]bool{}
	for key, s := range in.Headers {
		lower := strings.ToLower(key)
		switch {
		case !headerName.MatchString(key):
			return fmt.Errorf("headers: %s is not the name of a header", quote(key))
		case slices.Contains(reservedHeaders, lower):
			return fmt.Errorf("headers: %s is set by roost", key)
		case !headerText(s):
			return fmt.Errorf("headers: %s has characters that cannot be in a header", key)
		case seen[lower]:
			return fmt.Errorf("headers: %s is given twice", key)
		}
		seen[lower] = true
	}
	return nil
}
