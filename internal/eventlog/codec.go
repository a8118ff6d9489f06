package eventlog

import (
	"fmt"

	"google.golang.org/protobuf/proto"

	"github.com/roost-dev/roost/internal/session"
	pb "github.com/roost-dev/roost/proto/eventlog/v1"
)

// version is the format that records and heads are written in. Readers refuse newer ones.
const version = 1

// AppendRecord appends the encoding of r to b. It fails only for an event that has no
// encoding, which is a fault of roost.
func AppendRecord(b []byte, r session.Record) ([]byte, error) {
	m := pb.Record{Seq: uint64(r.Seq), At: r.At, Version: version}
	if err := encodeEvent(&m, r.Event); err != nil {
		return b, err
	}
	return proto.MarshalOptions{}.MarshalAppend(b, &m)
}

// DecodeRecord reads a record. Anything it does not understand to the last field that
// matters is ErrCorrupt: a session whose history is read wrongly is worse than one that
// cannot be read. It keeps no reference to b.
func DecodeRecord(b []byte) (session.Record, error) {
	var m pb.Record
	if err := proto.Unmarshal(b, &m); err != nil {
		return session.Record{}, corrupt("record: %v", err)
	}
	if err := checkVersion("record", m.GetVersion()); err != nil {
		return session.Record{}, err
	}
	if m.GetSeq() == 0 {
		return session.Record{}, corrupt("record without sequence number")
	}
	var d decoder
	event := d.event(&m)
	if d.err != nil {
		return session.Record{}, fmt.Errorf("event %d: %w", m.GetSeq(), d.err)
	}
	return session.Record{Seq: session.Seq(m.GetSeq()), At: m.GetAt(), Event: event}, nil
}

// AppendItems appends the encoding of items to b. What AppendItems has written for two
// slices, one after the other, decodes as their concatenation.
func AppendItems(b []byte, items []session.Item) ([]byte, error) {
	ms, err := encodeItems(items)
	if err != nil {
		return b, err
	}
	return proto.MarshalOptions{}.MarshalAppend(b, &pb.Items{Items: ms})
}

// DecodeItems reads what AppendItems wrote, or returns ErrCorrupt. It keeps no reference
// to b.
func DecodeItems(b []byte) ([]session.Item, error) {
	var m pb.Items
	if err := proto.Unmarshal(b, &m); err != nil {
		return nil, corrupt("items: %v", err)
	}
	var d decoder
	return d.items(m.GetItems()), d.err
}

// AppendHead appends the encoding of h to b.
func AppendHead(b []byte, h session.Head) ([]byte, error) {
	m := &pb.Head{
		Version: version,
		Id:      string(h.ID), Cwd: h.Cwd, Name: h.Name,
		Model: encodeModel(h.Model), Thinking: string(h.Thinking),
		Parent: string(h.Parent), Origin: h.Origin,
		CreatedAt: h.CreatedAt, UpdatedAt: h.UpdatedAt, Seq: uint64(h.Seq),
		LastRun: uint32(h.LastRun), LastOutcome: encodeOutcome(h.LastOutcome), LastError: h.LastError,
		Users: h.Users, Usage: encodeUsage(&h.Usage),
		Mode: string(h.Mode), Context: h.Context, Grants: h.Grants,
		Summary: h.Summary, Summarized: uint32(h.Summarized), Shortened: uint32(h.Shortened),
		Compacted: uint32(h.Compacted), RunSeq: uint64(h.RunSeq), Front: encodeFront(h.Front),
		LastFault: string(h.LastFault),
	}
	for i, seq := range h.TakenUps {
		if i == 0 {
			m.TakenUp = uint64(seq)
			continue
		}
		m.TakenUps = append(m.TakenUps, uint64(seq))
	}
	return proto.MarshalOptions{}.MarshalAppend(b, m)
}

// DecodeHead reads what AppendHead wrote, or returns ErrCorrupt.
func DecodeHead(b []byte) (session.Head, error) {
	var m pb.Head
	if err := proto.Unmarshal(b, &m); err != nil {
		return session.Head{}, corrupt("head: %v", err)
	}
	if err := checkVersion("head", m.GetVersion()); err != nil {
		return session.Head{}, err
	}
	var d decoder
	h := session.Head{
		ID: session.ID(m.GetId()), Cwd: m.GetCwd(), Name: m.GetName(),
		Model: decodeModel(m.GetModel()), Thinking: session.Thinking(m.GetThinking()),
		Parent: session.ID(m.GetParent()), Origin: m.GetOrigin(),
		CreatedAt: m.GetCreatedAt(), UpdatedAt: m.GetUpdatedAt(), Seq: session.Seq(m.GetSeq()),
		LastRun: session.RunID(m.GetLastRun()), LastOutcome: d.outcome(m.GetLastOutcome()), LastError: m.GetLastError(),
		Users: m.GetUsers(), Mode: session.Mode(m.GetMode()), Context: m.GetContext(), Grants: m.GetGrants(),
		Summary: m.GetSummary(), Summarized: int(m.GetSummarized()), Shortened: int(m.GetShortened()),
		Compacted: int(m.GetCompacted()), RunSeq: session.Seq(m.GetRunSeq()),
		Front: decodeFront(m.GetFront()), LastFault: session.Fault(m.GetLastFault()),
	}
	if u := decodeUsage(m.GetUsage()); u != nil {
		h.Usage = *u
	}
	if m.GetTakenUp() > 0 {
		h.TakenUps = append(h.TakenUps, session.Seq(m.GetTakenUp()))
	}
	for _, seq := range m.GetTakenUps() {
		h.TakenUps = append(h.TakenUps, session.Seq(seq))
	}
	return h, d.err
}

func checkVersion(what string, v uint32) error {
	switch {
	case v == 0:
		return corrupt("%s without version", what)
	case v > version:
		return corrupt("%s has version %d and this roost reads up to %d: use a newer roost", what, v, version)
	}
	return nil
}

// corrupt returns an ErrCorrupt with a reason.
func corrupt(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrCorrupt, fmt.Sprintf(format, args...))
}

// decoder collects the first thing that could not be understood.
type decoder struct{ err error }

func (d *decoder) fail(format string, args ...any) {
	if d.err == nil {
		d.err = corrupt(format, args...)
	}
}
