package cursorwire

import (
	"bufio"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	agentv1 "github.com/roost-dev/roost/proto/agent/v1"
)

// rows reads a table of facts without its header.
func rows(tb testing.TB, name string) [][]string {
	tb.Helper()
	f, err := os.Open("generate/facts/" + name + ".tsv")
	if err != nil {
		tb.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	var all [][]string
	for lines := bufio.NewScanner(f); lines.Scan(); {
		all = append(all, strings.Split(lines.Text(), "\t"))
	}
	return all[1:]
}

func find[D protoreflect.Descriptor](tb testing.TB, name string) D {
	tb.Helper()
	d, err := protoregistry.GlobalFiles.FindDescriptorByName(protoreflect.FullName(name))
	if err != nil {
		tb.Fatalf("%s: %v", name, err)
	}
	typed, ok := d.(D)
	if !ok {
		tb.Fatalf("%s is a %T", name, d)
	}
	return typed
}

// Every field of every generated message is the table's, in number, name, type, presence, choice and
// JSON name. The generated code has nothing that the tables have not, and leaves out nothing but
// fields of messages that it has not either.
func TestFieldsAreTheTables(t *testing.T) {
	checked, leftOut := map[string]int{}, 0
	for _, row := range append(rows(t, "fields"), rows(t, "spec_fields")...) {
		m := find[protoreflect.MessageDescriptor](t, row[0])
		if row[4] == "empty" {
			checked[row[0]] += 0
			continue
		}
		f := m.Fields().ByName(protoreflect.Name(row[2]))
		if f == nil {
			if _, err := protoregistry.GlobalFiles.FindDescriptorByName(protoreflect.FullName(row[3])); err == nil {
				t.Errorf("%s.%s is left out, but not its type", row[0], row[2])
			}
			leftOut++
			continue
		}
		checked[row[0]]++
		want := row[1:]
		if f.Kind() == protoreflect.MessageKind && row[4] == "optional" {
			want[3] = "single" // a message has presence anyway
		}
		if got := describe(f); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", row[0], got, want)
		}
		if f.IsPacked() != (f.IsList() && f.Kind() != protoreflect.StringKind && f.Kind() != protoreflect.BytesKind && f.Kind() != protoreflect.MessageKind) {
			t.Errorf("%s.%s: packed %v", row[0], row[2], f.IsPacked())
		}
	}
	generated, fields := 0, 0
	for m := range allMessages() {
		generated++
		fields += m.Fields().Len()
		if n, ok := checked[string(m.FullName())]; !ok || n != m.Fields().Len() {
			t.Errorf("%s has %d fields, the tables %d", m.FullName(), m.Fields().Len(), n)
		}
	}
	if generated < 500 || fields < 1800 || leftOut < 100 {
		t.Errorf("%d messages with %d fields, %d left out", generated, fields, leftOut)
	}
}

// describe writes a field as a row of the table: number, name, type, label, oneof, map key, JSON name.
func describe(f protoreflect.FieldDescriptor) []string {
	typ, label, oneof, key := f, "single", "", ""
	switch {
	case f.IsMap():
		label, typ, key = "map", f.MapValue(), f.MapKey().Kind().String()
	case f.IsList():
		label = "repeated"
	case f.ContainingOneof() != nil:
		label, oneof = "oneof", string(f.ContainingOneof().Name())
	case f.HasPresence() && f.Kind() != protoreflect.MessageKind:
		label = "optional"
	}
	name := typ.Kind().String()
	switch typ.Kind() {
	case protoreflect.MessageKind:
		name = string(typ.Message().FullName())
	case protoreflect.EnumKind:
		name = string(typ.Enum().FullName())
	default:
	}
	return []string{fmt.Sprint(f.Number()), string(f.Name()), name, label, oneof, key, f.JSONName()}
}

func allMessages() map[protoreflect.MessageDescriptor]bool {
	all := map[protoreflect.MessageDescriptor]bool{}
	var walk func(protoreflect.MessageDescriptors)
	walk = func(list protoreflect.MessageDescriptors) {
		for i := range list.Len() {
			if m := list.Get(i); !m.IsMapEntry() {
				all[m] = true
				walk(m.Messages())
			}
		}
	}
	for _, path := range []string{"agent/v1/agent.proto", "aiserver/v1/aiserver.proto"} {
		if d, err := protoregistry.GlobalFiles.FindFileByPath(path); err == nil {
			walk(d.Messages())
		}
	}
	return all
}

func TestEnumsAreTheTables(t *testing.T) {
	counts := map[string]int{}
	for _, row := range rows(t, "enums") {
		e := find[protoreflect.EnumDescriptor](t, row[0])
		counts[row[0]]++
		if v := e.Values().ByName(protoreflect.Name(row[1])); v == nil || fmt.Sprint(v.Number()) != row[2] {
			t.Errorf("%s: %s is not %s", row[0], row[1], row[2])
		}
		if e.IsClosed() {
			t.Errorf("%s is closed: a newer value would be lost", row[0])
		}
	}
	for name, n := range counts {
		if e := find[protoreflect.EnumDescriptor](t, name); e.Values().Len() != n {
			t.Errorf("%s has %d values, the table %d", name, e.Values().Len(), n)
		}
	}
}

func TestCallsAreTheTables(t *testing.T) {
	paths := map[string]bool{}
	for _, row := range append(rows(t, "rpcs"), rows(t, "spec_rpcs")...) {
		m := find[protoreflect.MethodDescriptor](t, row[0]+"."+row[1])
		streaming := map[[2]bool]string{{false, false}: "unary", {false, true}: "server_stream", {true, true}: "bidi_stream"}
		got := []string{string(m.Input().FullName()), string(m.Output().FullName()), streaming[[2]bool{m.IsStreamingClient(), m.IsStreamingServer()}]}
		if !slices.Equal(got, row[2:]) {
			t.Errorf("%s: %q, want %q", row[1], got, row[2:])
		}
		paths["/"+row[0]+"/"+row[1]] = true
	}
	for _, path := range []string{PathRun, PathRunSSE, PathBidiAppend} {
		if !paths[path] {
			t.Errorf("no call has the path %s", path)
		}
	}
}

// The fields that section 3.0 names as newer than the tables come back, known or not.
func TestUnknownFieldsSurvive(t *testing.T) {
	for _, tr := range traces(t) {
		m := tr.message(t)
		addUnknown(m.ProtoReflect())
		data, err := Proto.Append(nil, m)
		if err != nil {
			t.Fatal(err)
		}
		back := newMessage(t, tr.Type)
		if err := Proto.Decode(data, back); err != nil || !proto.Equal(m, back) {
			t.Fatalf("%s: %v\n%v\n%v", tr.Trace, err, m, back)
		}
	}
}

// addUnknown gives m and every message in it fields of each wire type that no table has.
func addUnknown(m protoreflect.Message) {
	m.SetUnknown(protoreflect.RawFields("\xf8\x7f\x05\xfa\x7f\x02hi\xfd\x7f\x01\x02\x03\x04\xf9\x7f\x01\x02\x03\x04\x05\x06\x07\x08"))
	m.Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch {
		case f.IsMap() && f.MapValue().Kind() == protoreflect.MessageKind:
			v.Map().Range(func(_ protoreflect.MapKey, item protoreflect.Value) bool {
				addUnknown(item.Message())
				return true
			})
		case f.IsList() && f.Kind() == protoreflect.MessageKind:
			for i := range v.List().Len() {
				addUnknown(v.List().Get(i).Message())
			}
		case !f.IsMap() && !f.IsList() && f.Kind() == protoreflect.MessageKind:
			addUnknown(v.Message())
		}
		return true
	})
}

// A field that is left out survives, also where it is an arm of a choice.
func TestLeftOutFieldsSurvive(t *testing.T) {
	// ExecClientMessage{1 id: 7, 22 computer_use_result: {1: {}}} in AgentClientMessage.2
	data := []byte("\x12\x07\x08\x07\xb2\x01\x02\x0a\x00")
	m, err := DecodeClient(Proto, data)
	if err != nil {
		t.Fatal(err)
	}
	exec := m.GetExecClientMessage()
	if exec.GetId() != 7 || exec.GetMessage() != nil || len(exec.ProtoReflect().GetUnknown()) == 0 {
		t.Errorf("%v", exec)
	}
	if again, err := Proto.Append(nil, m); err != nil || string(again) != string(data) {
		t.Errorf("%x, %v", again, err)
	}
}

// Text that is not UTF-8 is neither refused nor changed.
func TestTextIsNotChecked(t *testing.T) {
	in := &agentv1.AgentClientMessage{Message: &agentv1.AgentClientMessage_ExecClientMessage{ExecClientMessage: &agentv1.ExecClientMessage{ExecId: "\xff\xfe"}}}
	data, err := Proto.Append(nil, in)
	if err != nil {
		t.Fatal(err)
	}
	if out, err := DecodeClient(Proto, data); err != nil || !proto.Equal(in, out) {
		t.Errorf("%v, %v", out, err)
	}
	if kept, err := JSON.Append([]byte("x"), in); err == nil || string(kept) != "x" {
		t.Errorf("JSON holds %q, %v", kept, err)
	}
}
