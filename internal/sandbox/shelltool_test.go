package sandbox_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/roost-dev/roost/internal/sandbox"
	"github.com/roost-dev/roost/internal/tool"
	"github.com/roost-dev/roost/internal/tool/shelltool"
)

// The tool bash, confined: as it is put together in the server.
func TestBashTool(t *testing.T) {
	if requireLandlock(t) == 0 {
		return
	}
	r := newRig(t)
	bash := shelltool.NewWith(shelltool.Options{
		Env: shelltool.Environ(),
		Wrap: func(call tool.Call, argv []string) ([]string, []string, error) {
			return sandbox.Wrap(sandbox.Options{Dir: call.Dir, OutputDir: call.OutputDir, Temp: r.opts.Temp, Required: true}, argv)
		},
	})
	run := func(ctx context.Context, line string, progress func(tool.Progress)) tool.Result {
		raw, err := json.Marshal(map[string]string{"command": line})
		if err != nil {
			t.Fatal(err)
		}
		return bash.Run(ctx, tool.Call{Input: raw, Dir: r.opts.Dir, OutputDir: r.opts.OutputDir}, progress)
	}
	quiet := func(tool.Progress) {}
	if res := run(t.Context(), "echo x > a; cat a; seq 10000 > /dev/stdout", quiet); res.IsError || res.Details == nil {
		t.Errorf("inside: %+v", res)
	}
	if res := run(t.Context(), "cat "+r.outside+"/secret", quiet); !res.IsError || !strings.Contains(res.Text, "Permission denied") {
		t.Errorf("outside: %+v", res)
	}
	// An abort ends it as it does without the sandbox.
	ctx, cancel := context.WithCancel(t.Context())
	started := time.Now()
	res := run(ctx, "echo started; touch b; sleep 100 & sleep 100", func(p tool.Progress) {
		if strings.Contains(p.Text, "started") {
			cancel()
		}
	})
	cancel()
	if !res.IsError || !strings.HasSuffix(res.Text, "Command aborted") || time.Since(started) > 10*time.Second {
		t.Errorf("aborted after %v: %+v", time.Since(started), res)
	}
	if _, err := os.Stat(filepath.Join(r.opts.Dir, "b")); err != nil {
		t.Error(err)
	}
}
