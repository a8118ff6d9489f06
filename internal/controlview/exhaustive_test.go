package controlview_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strings"
	"testing"

	"github.com/roost-dev/roost/internal/controlview"
	"github.com/roost-dev/roost/internal/session"
	roostv1 "github.com/roost-dev/roost/proto/roost/v1"
)

// declared returns the names of the types that have a marker method, from the source.
func declared(t *testing.T, file, marker string) []string {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), "../session/"+file, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, d := range f.Decls {
		if m, ok := d.(*ast.FuncDecl); ok && m.Recv != nil && m.Name.Name == marker {
			names = append(names, m.Recv.List[0].Type.(*ast.Ident).Name)
		}
	}
	slices.Sort(names)
	return names
}

func TestEveryEventIsProjected(t *testing.T) {
	var names []string
	kinds := make(map[string]bool)
	for _, e := range allEvents {
		names = append(names, strings.TrimPrefix(fmt.Sprintf("%T", e), "session."))
		w := controlview.Event(session.Record{Seq: 1, Event: e})
		switch e.(type) {
		case session.ToolIssued, session.FrontSet, session.TakenUp: // concern nobody outside
			if w.Kind != nil {
				t.Errorf("%T is projected as %T", e, w.Kind)
			}
			continue
		}
		if w.Kind == nil {
			t.Errorf("%T has no projection", e)
		}
		kinds[fmt.Sprintf("%T", w.Kind)] = true
	}
	slices.Sort(names)
	if want := declared(t, "event.go", "event"); !slices.Equal(names, want) {
		t.Errorf("events projected: %v\ndeclared: %v", names, want)
	}
	oneof := (&roostv1.Event{}).ProtoReflect().Descriptor().Oneofs().ByName("kind")
	if got, want := len(kinds), oneof.Fields().Len(); got != want {
		t.Errorf("%d of the API's %d kinds of event occur", got, want)
	}
}

func TestEveryBlockIsProjected(t *testing.T) {
	blocks := []session.Block{session.Image{}, session.Reasoning{Signature: "s"}, session.Text{}, session.ToolCall{}}
	var names []string
	for _, b := range blocks {
		names = append(names, strings.TrimPrefix(fmt.Sprintf("%T", b), "session."))
		item := controlview.Item(&session.Assistant{Blocks: []session.Block{b}})
		if item.GetAssistant().Blocks[0].Kind == nil {
			t.Errorf("%T has no projection", b)
		}
	}
	if want := declared(t, "item.go", "block"); !slices.Equal(names, want) {
		t.Errorf("blocks projected: %v\ndeclared: %v", names, want)
	}
}

func TestEnumsAreProjected(t *testing.T) {
	for s := session.Streaming; s <= session.Aborted; s++ {
		if controlview.Item(&session.Assistant{Status: s}).GetAssistant().Status != roostv1.Status(s)+1 {
			t.Errorf("status %d", s)
		}
	}
	for s := session.StopNone; s <= session.StopRefusal; s++ {
		if controlview.Item(&session.Assistant{Stop: s}).GetAssistant().Stop != roostv1.StopReason(s) {
			t.Errorf("stop reason %d", s)
		}
	}
	for h := session.HostWorkspace; h <= session.HostClient; h++ {
		if controlview.Item(&session.Tool{Host: h}).GetTool().Host != roostv1.Host(h)+1 {
			t.Errorf("host %d", h)
		}
	}
	for o := session.RunCompleted; o <= session.RunFailed; o++ {
		w := controlview.Event(session.Record{Event: session.RunEnded{Outcome: o}})
		if w.GetRunEnded().Outcome != roostv1.Outcome(o)+1 {
			t.Errorf("outcome %d", o)
		}
	}
}

func TestTextIsMadeValid(t *testing.T) {
	w := controlview.Event(session.Record{Event: session.Delta{Text: "a\xff\xfeb"}})
	if got := w.GetDelta().Text; got != "a\uFFFDb" {
		t.Errorf("got %q", got)
	}
}
