package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const root = "../../.."

func checkedInSelection(t *testing.T) selection {
	t.Helper()
	sel, err := readSelection("selection.txt")
	if err != nil {
		t.Fatal(err)
	}
	return sel
}

// What is checked in is what the facts give, and giving it again gives the same.
func TestCheckedInFilesAreGenerated(t *testing.T) {
	for range 2 {
		files, err := generate("facts", checkedInSelection(t))
		if err != nil {
			t.Fatal(err)
		}
		for path, text := range files {
			have, err := os.ReadFile(filepath.Join(root, path))
			if err != nil {
				t.Fatal(err)
			}
			if string(have) != text {
				t.Errorf("%s is not what the facts give: go run ./internal/cursorwire/generate", path)
			}
		}
	}
}

// Taking the needed rows of tables that hold only those changes nothing: no row is superfluous.
func TestFactsAreTheNeededRows(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"spec_fields.tsv", "spec_rpcs.tsv"} {
		copyFile(t, filepath.Join("facts", name), filepath.Join(dir, name))
	}
	if err := renew(dir, "facts", checkedInSelection(t)); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"fields.tsv", "enums.tsv", "rpcs.tsv"} {
		if read(t, filepath.Join(dir, name)) != read(t, filepath.Join("facts", name)) {
			t.Errorf("%s has rows that no message needs, or in another form", name)
		}
	}
}

func TestRunWritesFiles(t *testing.T) {
	dir := t.TempDir()
	facts := filepath.Join(dir, here, "facts")
	if err := os.MkdirAll(facts, 0o755); err != nil {
		t.Fatal(err)
	}
	copyFile(t, "selection.txt", filepath.Join(dir, here, "selection.txt"))
	for _, name := range []string{"spec_fields.tsv", "spec_rpcs.tsv"} {
		copyFile(t, filepath.Join("facts", name), filepath.Join(facts, name))
	}
	if err := run(dir, "facts"); err != nil {
		t.Fatal(err)
	}
	const path = "proto/aiserver/v1/aiserver.proto"
	if read(t, filepath.Join(dir, path)) != read(t, filepath.Join(root, path)) {
		t.Error("another text than the checked-in one")
	}
	if err := run(t.TempDir(), ""); err == nil {
		t.Error("no error without a selection")
	}
}

func TestPrint(t *testing.T) {
	got, err := generate("testdata/facts", selection{
		rpcs: []string{"agent.v1.S/Do", "agent.v1.S/Listen", "agent.v1.S/Talk"},
		cuts: []string{"agent.v1.Unread", "agent.v1.M.noise"},
	})
	if err != nil {
		t.Fatal(err)
	}
	if want := read(t, "testdata/agent.proto"); got["proto/agent/v1/agent.proto"] != want {
		t.Errorf("got\n%s\nwant\n%s", got["proto/agent/v1/agent.proto"], want)
	}
}

func TestRefusals(t *testing.T) {
	const fields = "message\tnumber\tname\ttype\tlabel\toneof\tmap_key\tjson_name\n"
	for name, c := range map[string]struct {
		fields, selection, want string
	}{
		"unknown message": {fields, "message a.M", "no table has the message a.M"},
		"unknown rpc":     {fields, "rpc a.S/Do", "no table has the rpc a.S/Do"},
		"unknown type":    {fields + "a.M\t1\tx\ta.N\tsingle\t\t\tx\n", "message a.M", "no table has a.N"},
		"useless cut":     {fields + "a.M\t1\tx\tstring\tsingle\t\t\tx\n", "message a.M\ncut a.N", "cut, but not reached: [a.N]"},
		"open scope":      {fields + "a.M.N\t1\tx\tstring\tsingle\t\t\tx\n", "message a.M.N", "a.M around it is not"},
		"contradiction":   {fields + "a.M\t1\tx\tstring\tsingle\t\t\tx\na.M\t1\ty\tstring\tsingle\t\t\ty\n", "message a.M", "contradicts"},
		"JSON name":       {fields + "a.M\t1\tx_y\tstring\tsingle\t\t\tother\n", "message a.M", "JSON name is not xY"},
		"columns":         {fields + "a.M\t1\n", "message a.M", "has 2 columns"},
		"header":          {"message\n", "message a.M", "the first line"},
		"number":          {fields + "a.M\tone\tx\tstring\tsingle\t\t\tx\n", "message a.M", "invalid syntax"},
		"verb":            {fields, "take a.M", "cannot read"},
		"two names":       {fields, "message a.M a.N", "cannot read"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			write(t, filepath.Join(dir, "fields.tsv"), c.fields)
			write(t, filepath.Join(dir, "selection.txt"), c.selection)
			sel, err := readSelection(filepath.Join(dir, "selection.txt"))
			if err == nil {
				_, err = generate(dir, sel)
			}
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %q", err, c.want)
			}
		})
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	write(t, to, read(t, from))
}
