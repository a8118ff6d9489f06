package testkit

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	agentv1 "github.com/roost-dev/roost/proto/agent/v1"

	"github.com/roost-dev/roost/internal/cursortool"
)

// TestCursorDocument keeps docs/cursor.md true as far as a test can: every message, action, update and
// tool has a row, every problem exactly one, and the tests that it names exist.
func TestCursorDocument(t *testing.T) {
	root := moduleRoot(t)
	data, err := os.ReadFile(filepath.Join(root, "docs", "cursor.md"))
	if err != nil {
		t.Fatal(err)
	}
	text := string(data)
	for _, m := range []proto.Message{
		&agentv1.AgentClientMessage{}, &agentv1.ConversationAction{}, &agentv1.AgentServerMessage{}, &agentv1.InteractionUpdate{},
	} {
		oneof := m.ProtoReflect().Descriptor().Oneofs().Get(0).Fields()
		for i := range oneof.Len() {
			if name := string(oneof.Get(i).Name()); strings.Count(text, "| `"+name+"` |") != 1 {
				t.Errorf("%s has no row, or more than one", name)
			}
		}
	}
	for _, d := range cursortool.Offer(cursortool.Offering{WebSearch: true, WebFetch: true, ReadLints: true, AskUser: true}) {
		if !strings.Contains(text, d.Name) {
			t.Errorf("the tool %s is not mentioned", d.Name)
		}
	}
	for kind, n := range map[string]int{"R": 53, "W": 55} {
		for i := 1; i <= n; i++ {
			if id := fmt.Sprintf("| %s%02d |", kind, i); strings.Count(text, id) != 1 {
				t.Errorf("%s has no row, or more than one", id)
			}
		}
	}
	tests := allTests(t, root)
	for _, name := range regexp.MustCompile(`\bTest[A-Z]\w+`).FindAllString(text, -1) {
		if !tests[name] {
			t.Errorf("there is no %s", name)
		}
	}
}

// allTests returns the names of all tests.
func allTests(t *testing.T, root string) map[string]bool {
	t.Helper()
	names := make(map[string]bool)
	declared := regexp.MustCompile(`(?m)^func (Test\w+)\(`)
	for _, pkg := range packages(t, root) {
		files, err := filepath.Glob(filepath.Join(root, pkg, "*_test.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range declared.FindAllStringSubmatch(string(text), -1) {
				names[m[1]] = true
			}
		}
	}
	return names
}
