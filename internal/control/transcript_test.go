package control_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/roost-dev/roost/client"
	"github.com/roost-dev/roost/internal/control/controltest"
	roostv1 "github.com/roost-dev/roost/proto/roost/v1"
)

func TestExportAndImport(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := controltest.Start(t, nil, controltest.Calls(`echo {"x":1}`), controltest.Thinks("hm", "Hello."))
		id := r.Create()
		if err := r.Client.SetThinking(t.Context(), id, "high"); err != nil {
			t.Fatal(err)
		}
		r.Prompt(id, "Hi")
		old := r.Idle(id)
		files := make(map[string][]byte)
		for format, says := range map[string]string{"md": "Hello.", "html": "<html", "jsonl": `{"`, "pi": `"version":3`} {
			data, err := r.Client.Export(t.Context(), id, format)
			if err != nil || !bytes.Contains(data, []byte(says)) {
				t.Errorf("%s: %v\n%s", format, err, data)
			}
			files[format] = data
		}
		for line := range strings.Lines(string(files["jsonl"])) {
			if !json.Valid([]byte(line)) {
				t.Errorf("not JSON: %s", line)
			}
		}

		got, err := r.Client.Import(t.Context(), &roostv1.ImportSessionRequest{Format: "pi", Data: files["pi"], Name: "again"})
		if err != nil {
			t.Fatal(err)
		}
		if s := got.Session; s.Id == id || s.Name != "again" || s.Cwd != "/" || s.Model != "test/family/model" || s.Thinking != "high" || len(got.Lost) != 0 {
			t.Errorf("imported: %v", got)
		}
		v := reads(r, got.Session.Id)
		ids := protocmp.IgnoreFields(&roostv1.Item{}, "id", "at")
		calls := protocmp.IgnoreFields(&roostv1.ToolCall{}, "id")
		prompts := protocmp.IgnoreFields(&roostv1.User{}, "prompt_id") // the file has no place for it
		if diff := cmp.Diff(old.Items, v.Items, protocmp.Transform(), ids, calls, prompts); diff != "" {
			t.Errorf("-exported +imported:\n%s", diff)
		}
		r.Prompt(got.Session.Id, "go on")
		r.Follow(got.Session.Id, v, func(v *client.View) bool { return v.Session.Run == nil && len(v.Items) == 6 })
	})
}

func TestImportTakesWhatTheServerHas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := controltest.Start(t, nil)
		file := `{"type":"session","version":3,"id":"x","timestamp":"2026-01-02T03:04:05.000Z","cwd":"/gone"}
{"type":"model_change","id":"1","parentId":null,"timestamp":"2026-01-02T03:04:05.000Z","provider":"else","modelId":"where"}
{"type":"message","id":"2","parentId":"1","timestamp":"2026-01-02T03:04:05.000Z","message":{"role":"user","content":"Hi"}}
nonsense
`
		big := strings.Repeat(" ", 3<<20) + "\n" // larger than other requests may be
		got, err := r.Client.Import(t.Context(), &roostv1.ImportSessionRequest{Format: "pi", Data: []byte(file + big), Cwd: "/"})
		if err != nil {
			t.Fatal(err)
		}
		if s := got.Session; s.Cwd != "/" || s.Model != "test/family/model" || s.ItemCount != 1 || len(got.Lost) != 1 {
			t.Errorf("imported: %v", got)
		}
		for name, c := range map[string]*roostv1.ImportSessionRequest{
			"a directory that is not here": {Format: "pi", Data: []byte(file)},
			"no session file":              {Format: "pi", Data: []byte("nonsense"), Cwd: "/"},
			"nothing":                      {Format: "pi", Cwd: "/"},
			"a format that is not read":    {Format: "md", Data: []byte(file), Cwd: "/"},
		} {
			if res, err := r.Client.Import(t.Context(), c); client.KindOf(err) != client.Invalid {
				t.Errorf("%s: %v, %v", name, res, err)
			}
		}
		id := got.Session.Id
		if _, err := r.Client.Export(t.Context(), id, "doc"); client.KindOf(err) != client.Invalid {
			t.Errorf("an unknown format: %v", err)
		}
		if _, err := r.Client.Export(t.Context(), "nope", "md"); client.KindOf(err) != client.NotFound {
			t.Errorf("no such session: %v", err)
		}
	})
}
