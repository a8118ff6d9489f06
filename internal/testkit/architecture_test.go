package testkit

import (
	"go/build"
	"io/fs"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/roost-dev/roost/"

// allowed says which of our packages a package may import (DESIGN: who may import whom). The
// longest prefix that matches a package decides; "…" stands for the rest of a path.
var allowed = []struct {
	pkg  string
	may  []string
	note string
}{
	{"internal/session", nil, "the vocabulary imports nothing"},
	{"internal/piwire", nil, "a wire package knows only its protocol"},
	{"internal/cursorwire/generate", nil, "writes the protocol's .proto files"},
	{"internal/cursorwire/...", []string{"proto/agent/...", "proto/aiserver/..."}, "a wire package knows only its protocol"},
	{"internal/cursor/cursortest", []string{"internal/cursorwire", "proto/agent/...", "proto/aiserver/..."}, "tests only"},
	{"internal/cursortool", []string{"internal/session", "proto/agent/..."}, "what a client can do"},
	{"internal/cursorview", []string{"internal/session", "internal/cursorwire", "internal/cursortool", "proto/agent/..."}, "a pure projection"},
	{"internal/cursor", []string{"internal/session", "internal/live", "internal/catalog", "internal/prompt", "internal/project", "internal/cursorwire", "internal/cursorwire/...", "internal/cursortool", "internal/cursorview", "proto/agent/...", "proto/aiserver/..."}, "a front end"},
	{"internal/eventlog/...", []string{"internal/session", "internal/eventlog/...", "proto/eventlog/..."}, "a port and its implementations"},
	{"internal/provider/...", []string{"internal/session", "internal/provider/..."}, "a port and its implementations"},
	{"internal/tool/tasktool", []string{"internal/tool/...", "internal/tool", "internal/session", "internal/live"}, "a tool that is a client of the engine"},
	{"internal/tool/...", []string{"internal/tool/...", "internal/workspace"}, "a port and its implementations"},
	{"internal/catalog", []string{"internal/session"}, "a leaf"},
	{"internal/blob", nil, "a leaf"},
	{"internal/datadir", nil, "a leaf"},
	{"internal/workspace", nil, "a leaf"},
	{"internal/guard", nil, "a leaf"},
	{"internal/telemetry", nil, "a leaf"},
	{"internal/config", []string{"internal/session"}, "a leaf"},
	{"internal/live", []string{"internal/session"}, "hands events on"},
	{"internal/prompt", []string{"internal/session", "internal/provider", "internal/catalog", "internal/project"}, "a pure function of state"},
	{"internal/project", []string{"internal/workspace"}, "a leaf"},
	{"internal/permission", nil, "a leaf"},
	{"internal/sandbox", nil, "a leaf"},
	{"internal/hook", []string{"internal/session", "internal/tool"}, "implements a port of the engine"},
	{"internal/transcript", []string{"internal/session"}, "a pure projection"},
	{"internal/actor", []string{"internal/session", "internal/live", "internal/eventlog", "internal/provider", "internal/tool", "internal/catalog", "internal/prompt"}, "sees ports, never implementations"},
	{"internal/piview", []string{"internal/session", "internal/piwire", "internal/catalog"}, "a pure projection"},
	{"internal/pi", []string{"internal/session", "internal/live", "internal/catalog", "internal/piwire", "internal/piview"}, "a front end"},
	{"internal/controlview", []string{"internal/session", "internal/catalog", "proto/roost/..."}, "a pure projection"},
	{"internal/control", []string{"internal/prompt", "internal/session", "internal/live", "internal/catalog", "internal/controlview", "internal/transcript", "proto/roost/..."}, "a front end"},
	{"internal/control/controltest", []string{"internal/...", "proto/...", "client"}, "tests only"},
	{"client", []string{"proto/roost/..."}, "knows the API only"},
	{"client/pi", []string{"internal/piwire"}, "knows the protocol only"},
	{"internal/cli", []string{"client", "proto/roost/...", "internal/piwire", "internal/config", "internal/session", "internal/backup", "internal/doctor", "internal/replay"}, "a client of the API, and of the data without a server"},
	{"internal/backup", []string{"internal/blob", "internal/datadir", "internal/eventlog/..."}, "works on the data directory"},
	{"internal/doctor", []string{"internal/session", "internal/blob", "internal/datadir", "internal/guard", "internal/eventlog", "internal/eventlog/..."}, "works on the data directory"},
	{"internal/replay", []string{"internal/session", "internal/blob", "internal/eventlog", "internal/eventlog/...", "internal/controlview", "internal/piview", "internal/piwire", "internal/cursorview", "proto/..."}, "prints projections of the data directory"},
	{"internal/testkit", []string{"internal/..."}, "tests only"},
	{"internal/simulation", nil, "a test of everything; what it imports is in its test files"},
	{"simulate", nil, "runs the simulation as WebAssembly"},
	{"internal/server", []string{"internal/...", "proto/..."}, "the composition root"},
	{"cmd/...", []string{"internal/cli", "internal/server", "internal/sandbox"}, "main joins the two"},
	{"proto/...", []string{"proto/..."}, "generated"},
	{"bench/...", []string{"internal/...", "client/...", "proto/..."}, "measures"},
	{"interop/...", []string{"internal/..."}, "measures"},
}

// exclusive names the one package that may import a third-party module.
var exclusive = map[string]string{
	"modernc.org/sqlite":               "internal/eventlog/sqlitelog",
	"github.com/coder/websocket":       "internal/pi",
	"github.com/spf13/cobra":           "internal/cli",
	"charm.land/catwalk":               "internal/catalog",
	"github.com/oklog/ulid":            "internal/server",
	"github.com/google/jsonschema-go":  "internal/tool/schema",
	"github.com/aymanbagabas/go-udiff": "internal/tool/fstool",
	"golang.org/x/image":               "internal/tool/fstool",
	"golang.org/x/text":                "internal/tool/fstool",
	"golang.org/x/term":                "internal/cli",
	"golang.org/x/net":                 "internal/tool/webtool",
	"golang.org/x/oauth2":              "internal/tool/mcptool",
	"mvdan.cc/sh":                      "internal/permission",
	"github.com/bmatcuk/doublestar":    "internal/permission",
	"github.com/landlock-lsm":          "internal/sandbox",
	"github.com/JohannesKaufmann":      "internal/tool/webtool",
	"github.com/modelcontextprotocol":  "internal/tool/mcptool",
}

func matches(pattern, pkg string) bool {
	prefix, isTree := strings.CutSuffix(pattern, "/...")
	return pkg == prefix || isTree && strings.HasPrefix(pkg, prefix+"/")
}

func TestImports(t *testing.T) {
	root := moduleRoot(t)
	for _, pkg := range packages(t, root) {
		p, err := build.ImportDir(filepath.Join(root, pkg), 0)
		if err != nil {
			continue // no Go files for this system
		}
		i := slices.IndexFunc(allowed, func(r struct {
			pkg  string
			may  []string
			note string
		},
		) bool {
			return matches(r.pkg, pkg)
		})
		if i < 0 {
			t.Errorf("%s: say in this test what it may import", pkg)
			continue
		}
		for _, path := range p.Imports {
			checkImport(t, pkg, path, allowed[i].may, allowed[i].note)
		}
	}
}

func checkImport(t *testing.T, pkg, path string, may []string, note string) {
	t.Helper()
	if ours, ok := strings.CutPrefix(path, module); ok {
		if !slices.ContainsFunc(may, func(m string) bool { return matches(m, ours) }) {
			t.Errorf("%s imports %s (%s)", pkg, ours, note)
		}
		return
	}
	for thirdParty, owner := range exclusive {
		if strings.HasPrefix(path, thirdParty) && pkg != owner {
			t.Errorf("%s imports %s, which belongs to %s", pkg, path, owner)
		}
	}
	if pkg == "internal/session" && (strings.HasPrefix(path, "net") || strings.HasPrefix(path, "os") || path == "time" || path == "io") {
		t.Errorf("%s imports %s: it does no I/O and reads no clock", pkg, path)
	}
}

func moduleRoot(t *testing.T) string {
	t.Helper()
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}").Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}

func packages(t *testing.T, root string) []string {
	t.Helper()
	var list []string
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return err
		}
		if name := d.Name(); path != root && (strings.HasPrefix(name, ".") || name == "testdata" || name == "node_modules") {
			return filepath.SkipDir
		}
		rel, err := filepath.Rel(root, path)
		if files, _ := filepath.Glob(filepath.Join(path, "*.go")); len(files) > 0 {
			list = append(list, filepath.ToSlash(rel))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// A rule whose package is gone, or that forbids nothing it meets, is noise.
func TestRulesAreNeeded(t *testing.T) {
	all := packages(t, moduleRoot(t))
	for _, r := range allowed {
		if strings.HasPrefix(r.pkg, "bench/") || strings.HasPrefix(r.pkg, "interop/") || strings.HasPrefix(r.pkg, "cmd/") {
			continue
		}
		if !slices.ContainsFunc(all, func(pkg string) bool { return matches(r.pkg, pkg) }) {
			t.Errorf("no package is meant by %s", r.pkg)
		}
	}
}
