// Package eventlogtest holds the contract of [eventlog.Log] as tests, which every
// implementation passes.
package eventlogtest

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/roost-dev/roost/internal/eventlog"
	"github.com/roost-dev/roost/internal/session"
)

// Run tests the logs that open returns, each of them empty. open closes them when the test
// ends.
func Run(t *testing.T, open func(t *testing.T) eventlog.Log) {
	t.Helper()
	for _, c := range []struct {
		name string
		test func(*testing.T, eventlog.Log)
	}{
		{"AppendThenRead", appendThenRead},
		{"AppendIsFenced", appendIsFenced},
		{"AppendRefusesNonsense", appendRefusesNonsense},
		{"AppendIsAllOrNone", appendIsAllOrNone},
		{"AppendOfAnEndedContext", appendOfAnEndedContext},
		{"AppendKeepsBigEvents", appendKeepsBigEvents},
		{"ManySessionsAtOnce", manySessionsAtOnce},
		{"OneOfManyWritersWins", oneOfManyWritersWins},
		{"ReadersSeePrefixes", readersSeePrefixes},
		{"ReadHasBounds", readHasBounds},
		{"ReadStopsEarly", readStopsEarly},
		{"ReadEndsAtTheCall", readEndsAtTheCall},
		{"CallsInsideLoops", callsInsideLoops},
		{"CompactReplacesEvents", compactReplacesEvents},
		{"CompactAddsItems", compactAddsItems},
		{"CompactRewinds", compactRewinds},
		{"CompactRefuses", compactRefuses},
		{"CompactAgain", compactAgain},
		{"CompactAgainstAModel", compactAgainstAModel},
		{"DeleteRemovesAll", deleteRemovesAll},
		{"ListFoldsMeta", listFoldsMeta},
		{"ListOrder", listOrder},
		{"ActiveSessions", activeSessions},
		{"CloseRefusesCalls", closeRefusesCalls},
		{"CloseWaits", closeWaits},
	} {
		t.Run(c.name, func(t *testing.T) { c.test(t, open(t)) })
	}
}

// RunDurable tests that logs keep everything when they are closed and opened again. open
// opens the log in a directory; closing it is up to the tests.
func RunDurable(t *testing.T, open func(t *testing.T, dir string) eventlog.Log) {
	t.Helper()
	t.Run("Reopen", func(t *testing.T) { reopen(t, open) })
}

// model is what the sessions of the tests use.
var model = session.ModelRef{Provider: "test", ID: "model"}

// created returns the first record of a session.
func created(id session.ID, at int64) session.Record {
	return session.Record{Seq: 1, At: at, Event: session.Created{ID: id, Cwd: "/work", Model: model, Thinking: session.ThinkingOff}}
}

// deltas returns n records after a sequence number.
func deltas(after session.Seq, n int) []session.Record {
	records := make([]session.Record, n)
	for i := range records {
		seq := after + 1 + session.Seq(i)
		records[i] = session.Record{Seq: seq, At: int64(seq) * 10, Event: session.Delta{Text: fmt.Sprintf("text %d", seq)}}
	}
	return records
}

// history returns the first n records of a session.
func history(id session.ID, n int) []session.Record {
	return append([]session.Record{created(id, 10)}, deltas(1, n-1)...)
}

func appendTo(t *testing.T, log eventlog.Log, id session.ID, records ...session.Record) {
	t.Helper()
	if err := log.Append(t.Context(), id, records[0].Seq-1, records); err != nil {
		t.Fatal(err)
	}
}

// read returns all records after a sequence number.
func read(t *testing.T, log eventlog.Log, id session.ID, after session.Seq) []session.Record {
	t.Helper()
	var records []session.Record
	for r, err := range log.Read(t.Context(), id, after) {
		if err != nil {
			t.Fatal(err)
		}
		records = append(records, r)
	}
	return records
}

// readError returns how a read ends.
func readError(t *testing.T, log eventlog.Log, id session.ID, after session.Seq) error {
	t.Helper()
	for _, err := range log.Read(t.Context(), id, after) {
		if err != nil {
			return err
		}
	}
	return nil
}

func load(t *testing.T, log eventlog.Log, id session.ID) eventlog.Snapshot {
	t.Helper()
	s, err := log.Load(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func compact(t *testing.T, log eventlog.Log, id session.ID, s eventlog.Snapshot) {
	t.Helper()
	if err := log.Compact(t.Context(), id, s); err != nil {
		t.Fatal(err)
	}
}

// snapshot returns one that replaces everything up to an event, with the items from on.
func snapshot(id session.ID, through session.Seq, from int, items ...session.Item) eventlog.Snapshot {
	return eventlog.Snapshot{
		Head:  session.Head{ID: id, Cwd: "/work", Model: model, Thinking: session.ThinkingOff, Seq: through, CreatedAt: 10},
		From:  from,
		Items: items,
	}
}

// items returns the items from index from up to index to, whose texts have so many bytes.
func items(mark string, from, to, size int) []session.Item {
	var all []session.Item
	for i := from; i < to; i++ {
		text := fmt.Sprintf("%-*s", size, fmt.Sprintf("%s %d", mark, i))
		all = append(all, &session.User{ID: session.ItemID(fmt.Sprintf("u%d", i)), Run: 1, Blocks: []session.Block{session.Text{Text: text}}})
	}
	return all
}

func list(t *testing.T, log eventlog.Log) []session.Meta {
	t.Helper()
	var metas []session.Meta
	for m, err := range log.List(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		metas = append(metas, m)
	}
	return metas
}

func same(t *testing.T, what string, got, want any) {
	t.Helper()
	if d := cmp.Diff(want, got, cmpopts.EquateEmpty()); d != "" {
		t.Fatalf("%s (-want +got):\n%s", what, d)
	}
}
