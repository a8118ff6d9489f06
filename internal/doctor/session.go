package doctor

import (
	"errors"
	"fmt"

	"github.com/roost-dev/roost/internal/blob"
	"github.com/roost-dev/roost/internal/eventlog"
	"github.com/roost-dev/roost/internal/eventlog/sqlitelog"
	"github.com/roost-dev/roost/internal/session"
)

var (
	errEmpty = errors.New("it has no events")
	errName  = errors.New("its events belong to a session with another id")
)

// history is what is stored of a session, added up.
type history struct {
	meta  session.Meta
	exact bool     // the time in meta is that of the last event that changed the index
	blobs []string // that it refers to
}

// read reads everything of a session and adds it up. Events that do not fit each other are an
// error like those that cannot be decoded.
func read(v *sqlitelog.View, e sqlitelog.Entry) (h history, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("its events do not add up: %v", r)
		}
	}()
	snapshot, err := v.Load(e)
	if err != nil {
		return h, err
	}
	state := &session.State{Head: snapshot.Head, Settled: snapshot.Items}
	if state.Seq > 0 {
		h.meta = eventlog.MetaOf(snapshot.Head)
		h.refer(snapshot.Head.Context)
	}
	h.items(snapshot.Items)
	for r, err := range v.Records(e, state.Seq) {
		if err != nil {
			return h, err
		}
		state.Apply(r)
		h.exact = h.meta.Apply(r) || h.exact
		h.event(r.Event)
	}
	switch {
	case state.Seq == 0:
		return h, errEmpty
	case e.Indexed && state.ID != e.ID:
		return h, errName
	}
	return h, nil
}

// indexed reports whether the row of the index says what the events say.
func (h *history) indexed(e sqlitelog.Entry) bool {
	row := e.Meta
	if !h.exact {
		row.UpdatedAt = h.meta.UpdatedAt
	}
	return e.Indexed && row == h.meta
}

// refer notes a reference to a blob, if it is one.
func (h *history) refer(hash string) {
	if blob.ValidHash(hash) {
		h.blobs = append(h.blobs, hash)
	}
}

func (h *history) event(e session.Event) {
	switch e := e.(type) {
	case session.RunStarted:
		h.refer(e.Offer)
		h.blocks(e.Blocks)
	case session.ModeSet:
		h.refer(e.Offer)
	case session.SteerQueued:
		h.blocks(e.Blocks)
	case session.NoteAdded:
		h.refer(e.Context)
	case session.ToolEnded:
		h.images(e.Images)
	case session.ItemsCopied:
		h.items(e.Items)
	}
}

func (h *history) items(items []session.Item) {
	for _, i := range items {
		switch i := i.(type) {
		case *session.User:
			h.blocks(i.Blocks)
		case *session.Assistant:
			h.blocks(i.Blocks)
		case *session.Tool:
			h.images(i.Images)
		}
	}
}

func (h *history) blocks(blocks []session.Block) {
	for _, b := range blocks {
		if i, ok := b.(session.Image); ok {
			h.refer(i.Blob)
		}
	}
}

func (h *history) images(images []session.Image) {
	for _, i := range images {
		h.refer(i.Blob)
	}
}
