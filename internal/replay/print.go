package replay

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"reflect"
	"time"

	"github.com/fxamacker/cbor/v2"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/roost-dev/roost/internal/controlview"
	"github.com/roost-dev/roost/internal/eventlog"
	"github.com/roost-dev/roost/internal/piview"
	"github.com/roost-dev/roost/internal/piwire"
	"github.com/roost-dev/roost/internal/session"
	pb "github.com/roost-dev/roost/proto/eventlog/v1"
)

// line is an event as it is printed.
type line struct {
	Seq   session.Seq     `json:"seq"`
	At    string          `json:"at"`
	Kind  string          `json:"kind"`
	Event json.RawMessage `json:"event"`
}

func printEvents(_ context.Context, h *history, w io.Writer) error {
	if s := h.snapshot.Head; s.Seq > 0 {
		about := fmt.Appendf(nil, `{"items":%d}`, len(h.snapshot.Items))
		if err := encode(w, line{s.Seq, clock(s.UpdatedAt), "snapshot", about}); err != nil {
			return err
		}
	}
	for _, r := range h.records {
		fields, err := fieldsOf(r)
		if err != nil {
			return err
		}
		if err := encode(w, line{r.Seq, clock(r.At), eventlog.Kind(r.Event), fields}); err != nil {
			return err
		}
	}
	return nil
}

func clock(ms int64) string { return time.UnixMilli(ms).UTC().Format("2006-01-02T15:04:05.000Z") }

// fieldsOf returns the fields of an event as they are stored.
func fieldsOf(r session.Record) (json.RawMessage, error) {
	data, err := eventlog.AppendRecord(nil, r)
	if err != nil {
		return nil, err
	}
	var m pb.Record
	if err := proto.Unmarshal(data, &m); err != nil {
		return nil, err
	}
	record := m.ProtoReflect()
	field := record.WhichOneof(record.Descriptor().Oneofs().Get(0))
	return protojson.Marshal(record.Get(field).Message().Interface())
}

func printRoost(_ context.Context, h *history, w io.Writer) error {
	messages := []proto.Message{
		controlview.Position(session.Position{Epoch: h.epoch, Seq: h.state.Seq}), controlview.Session(h.state),
	}
	for _, i := range h.state.Transcript() {
		messages = append(messages, controlview.Item(i))
	}
	for _, m := range messages {
		data, err := protojson.Marshal(m)
		if err != nil {
			return err
		}
		if err := encode(w, json.RawMessage(data)); err != nil {
			return err
		}
	}
	return nil
}

// printPi takes the way over the bytes, so that what is printed is what a client reads.
func printPi(ctx context.Context, h *history, w io.Writer) error {
	images := func(i session.Image) ([]byte, bool) {
		data, err := h.blobs.Get(ctx, i.Blob)
		return data, err == nil
	}
	snapshot, err := piview.Snapshot(h.state, false, piwire.MaxFrame, images)
	if err != nil {
		return err
	}
	data, err := piwire.AppendServer(nil, &piwire.SessionSnapshotEvent{Snapshot: snapshot})
	if err != nil {
		return err
	}
	mode, err := cbor.DecOptions{
		MaxNestedLevels: 256, MaxArrayElements: 1 << 21, MaxMapPairs: 1 << 21, DefaultMapType: reflect.TypeFor[map[string]any](),
	}.DecMode()
	if err != nil {
		return err
	}
	var message any
	if err := mode.Unmarshal(data, &message); err != nil {
		return err
	}
	return encode(w, message)
}

// encode writes a line of JSON, without what protojson varies on purpose.
func encode(w io.Writer, v any) error {
	out := json.NewEncoder(w)
	out.SetEscapeHTML(false)
	return out.Encode(v)
}
