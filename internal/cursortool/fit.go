package cursortool

import (
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	agentv1 "github.com/roost-dev/roost/proto/agent/v1"
)

// Fit makes card at most limit bytes long when marshalled, at least about 1 KiB: it leaves out a
// file before and after an edit, then shortens long texts and lists, those of the result first.
// Bytes (pictures) are kept whole or left out.
func Fit(card *agentv1.ToolCall, limit int) {
	if card == nil || proto.Size(card) <= limit {
		return
	}
	if ok := card.GetEditToolCall().GetResult().GetSuccess(); ok != nil {
		// A part of a file would be taken for the file, when an edit is undone.
		ok.BeforeFullFileContent, ok.AfterFullFileContent = nil, ""
	}
	for _, only := range []protoreflect.Name{"result", ""} {
		for most := limit / 2; most >= 32 && proto.Size(card) > limit; most /= 2 {
			shorten(card.ProtoReflect(), only, cut{text: most, list: most / 16}, 0)
		}
	}
	if proto.Size(card) > limit {
		card.Tool, card.HookAdditionalContexts = nil, nil
	}
}

// cut is how much is left of a text, in bytes, and of a list.
type cut struct{ text, list int }

// shorten goes through a card; with only, just that field of the tool's message is changed.
func shorten(m protoreflect.Message, only protoreflect.Name, c cut, depth int) {
	m.Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		if depth == 1 && only != "" && f.Name() != only {
			return true
		}
		switch {
		case f.IsMap():
			shortenMap(v.Map(), f, only, c, depth)
		case f.IsList():
			shortenList(m, f, only, c, depth)
		case f.Message() != nil:
			shorten(v.Message(), only, c, depth+1)
		case f.Kind() == protoreflect.StringKind && len(v.String()) > c.text:
			m.Set(f, protoreflect.ValueOfString(cutMiddle(v.String(), c.text)))
		case f.Kind() == protoreflect.BytesKind && len(v.Bytes()) > c.text:
			m.Clear(f)
		}
		return true
	})
}

func shortenMap(entries protoreflect.Map, f protoreflect.FieldDescriptor, only protoreflect.Name, c cut, depth int) {
	kept := 0
	entries.Range(func(k protoreflect.MapKey, v protoreflect.Value) bool {
		kept++
		switch value := f.MapValue(); {
		case kept > max(c.list, 1):
			entries.Clear(k)
		case value.Message() != nil:
			shorten(v.Message(), only, c, depth+1)
		case value.Kind() == protoreflect.StringKind && len(v.String()) > c.text:
			entries.Set(k, protoreflect.ValueOfString(cutMiddle(v.String(), c.text)))
		}
		return true
	})
}

func shortenList(m protoreflect.Message, f protoreflect.FieldDescriptor, only protoreflect.Name, c cut, depth int) {
	l := m.Mutable(f).List()
	if n := max(c.list, 1); l.Len() > n {
		l.Truncate(n)
	}
	for i := range l.Len() {
		switch {
		case f.Message() != nil:
			shorten(l.Get(i).Message(), only, c, depth+1)
		case f.Kind() == protoreflect.StringKind && len(l.Get(i).String()) > c.text:
			l.Set(i, protoreflect.ValueOfString(cutMiddle(l.Get(i).String(), c.text)))
		}
	}
}
