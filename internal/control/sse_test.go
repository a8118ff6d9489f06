package control_test

import (
	"bufio"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/klauspost/compress/zstd"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/roost-dev/roost/client"
	"github.com/roost-dev/roost/internal/control"
	"github.com/roost-dev/roost/internal/control/controltest"
	"github.com/roost-dev/roost/internal/provider"
	roostv1 "github.com/roost-dev/roost/proto/roost/v1"
)

// serverEvent is a server-sent event as a program without a client reads it.
type serverEvent struct{ id, name, data string }

// reply is an answer whose body is closed at the end of the test, or before.
type reply struct {
	*http.Response
	close func()
}

// get asks for events. Headers are names and values in turn.
func get(t *testing.T, r *controltest.Rig, path string, headers ...string) reply {
	t.Helper()
	return request(t, r, http.MethodGet, path, headers...)
}

func request(t *testing.T, r *controltest.Rig, method, path string, headers ...string) reply {
	t.Helper()
	transport := &http.Transport{
		DialContext:       func(ctx context.Context, _, _ string) (net.Conn, error) { return r.Dial(ctx) },
		DisableKeepAlives: true, DisableCompression: true,
	}
	req, err := http.NewRequestWithContext(t.Context(), method, "http://localhost"+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	res, err := transport.RoundTrip(req) //nolint:bodyclose // it is, at the end of the test
	if err != nil {
		t.Fatal(err)
	}
	body := res.Body
	t.Cleanup(func() { _ = body.Close() })
	return reply{res, func() { _ = body.Close() }}
}

// readEvent reads the next event; io.EOF is the end of the stream.
func readEvent(r *bufio.Reader) (e serverEvent, err error) {
	for {
		line, err := r.ReadString('\n')
		if err != nil {
			return e, err
		}
		field, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ": ")
		switch field {
		case "id":
			e.id = value
		case "event":
			e.name = value
		case "data":
			e.data = value
		case "":
			return e, nil
		}
	}
}

// until reads events up to the first that f accepts.
func until(t *testing.T, r *bufio.Reader, f func(serverEvent) bool) []serverEvent {
	t.Helper()
	var list []serverEvent
	for {
		e, err := readEvent(r)
		if err != nil {
			t.Fatalf("after %v: %v", list, err)
		}
		if list = append(list, e); f(e) {
			return list
		}
	}
}

// eventsIn are the events of the session in a frame.
func eventsIn(t *testing.T, e serverEvent) []*roostv1.Event {
	t.Helper()
	var m roostv1.Events
	if err := protojson.Unmarshal([]byte(e.data), &m); err != nil {
		t.Fatalf("%s: %v", e.data, err)
	}
	return m.Events
}

// seqs are the numbers of the events in a frame.
func seqs(t *testing.T, e serverEvent) (list []uint64) {
	t.Helper()
	for _, event := range eventsIn(t, e) {
		list = append(list, event.Seq)
	}
	return list
}

func named(name string) func(serverEvent) bool {
	return func(e serverEvent) bool { return e.name == name }
}

func path(id string) string { return "/v1/sessions/" + id + "/events" }

// Whatever event was the last that a program has read, it gets exactly the rest, and every frame has an id.
func TestEventsResumeAfterAnyEvent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := controltest.Start(t, nil, controltest.Thinks("hm", "one two three"))
		id := r.Create()
		r.Prompt(id, "go")
		last := r.Idle(id).Position.Seq
		const created = 1 // is no event of the run
		var all []uint64
		for from := uint64(created); from < last; from++ {
			res := get(t, r, path(id), "Last-Event-ID", fmt.Sprintf("1-%d", from))
			if res.StatusCode != http.StatusOK || res.Header.Get("Content-Type") != "text/event-stream" {
				t.Fatalf("from %d: %s", from, res.Status)
			}
			var got []uint64
			at := from
			for _, e := range until(t, bufio.NewReader(res.Body), named("heartbeat")) {
				if e.name == "events" {
					got = append(got, seqs(t, e)...)
					at = got[len(got)-1]
				}
				if e.id != fmt.Sprintf("1-%d", at) {
					t.Errorf("from %d: a frame has the id %q after event %d", from, e.id, at)
				}
			}
			if from == created {
				all = got
			}
			rest := slices.DeleteFunc(slices.Clone(all), func(seq uint64) bool { return seq <= from })
			if !slices.Equal(got, rest) || at != last {
				t.Errorf("from %d: events %v, want %v", from, got, rest)
			}
			res.close()
		}
		if len(all) < 6 {
			t.Errorf("a run of the events %v", all)
		}
	})
}

// While a run goes on and the connection is cut again and again, a program that comes back with the last
// id reads every event once.
func TestEventsOverCutConnections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		words := func(ctx context.Context, yield func(provider.Part)) error {
			for n := range 50 {
				select {
				case <-time.After(100 * time.Millisecond):
				case <-ctx.Done():
					return ctx.Err()
				}
				yield(provider.Part{Kind: provider.TextDelta, Text: fmt.Sprint(n, " ")})
			}
			yield(provider.Part{Kind: provider.Finish})
			return nil
		}
		r := controltest.Start(t, func(o *control.Options) { o.Heartbeat = time.Second }, words)
		id := r.Create()
		r.Prompt(id, "go")
		at, seq, said, beats := "1-0", uint64(0), "", 0
		for cuts := 0; beats < 2; cuts++ {
			res := get(t, r, path(id)+"?after=1-0", "Last-Event-ID", at)
			body := bufio.NewReader(res.Body)
			for n := 0; n < 5 && beats < 2; n++ {
				e, err := readEvent(body)
				if err != nil {
					t.Fatal(err)
				}
				switch at = e.id; e.name {
				case "events":
					beats = 0
					for _, event := range eventsIn(t, e) {
						if event.Seq <= seq {
							t.Fatalf("event %d after %d", event.Seq, seq)
						}
						seq = event.Seq
						said += event.GetDelta().GetText()
					}
				case "heartbeat":
					beats++
				default:
					t.Fatalf("a frame %v", e)
				}
			}
			res.close()
			r.Cut()
		}
		want := ""
		for n := range 50 {
			want += fmt.Sprint(n, " ")
		}
		if last := r.Idle(id).Position.Seq; seq != last || said != want {
			t.Errorf("the last event is %d, want %d; what was said is %q", seq, last, said)
		}
	})
}

// Each position that cannot be resumed has an answer of its own before any data: in server-sent events,
// and in roost's own API for a client that asks for it.
func TestPositionsThatCannotBeResumed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := controltest.Start(t, nil)
		id := r.Create()
		for range 3 { // the newest run keeps its events, older ones are compacted
			r.Prompt(id, "go")
			r.Idle(id)
		}
		latest := r.Idle(id).Position.Seq
		for _, c := range []struct {
			id       string
			position *roostv1.Position
			status   int
			name     string
			fault    roostv1.PositionFault
		}{
			{"1-2", &roostv1.Position{Epoch: 1, Seq: 2}, http.StatusGone, "gone", roostv1.PositionFault_POSITION_FAULT_GONE},
			{fmt.Sprintf("1-%d", latest+1), &roostv1.Position{Epoch: 1, Seq: latest + 1}, http.StatusGone, "foreign", roostv1.PositionFault_POSITION_FAULT_FOREIGN},
			{fmt.Sprintf("7-%d", latest), &roostv1.Position{Epoch: 7, Seq: latest}, http.StatusGone, "other_epoch", roostv1.PositionFault_POSITION_FAULT_OTHER_EPOCH},
			{"0-2", &roostv1.Position{Seq: 2}, http.StatusBadRequest, "malformed", roostv1.PositionFault_POSITION_FAULT_MALFORMED},
			{"1-18446744073709551615", &roostv1.Position{Epoch: 1, Seq: 1<<64 - 1}, http.StatusBadRequest, "malformed", roostv1.PositionFault_POSITION_FAULT_MALFORMED},
			{"1-2-3", nil, http.StatusBadRequest, "malformed", 0},
			{"01-2", nil, http.StatusBadRequest, "malformed", 0},
			{"1", nil, http.StatusBadRequest, "malformed", 0},
			{"last", nil, http.StatusBadRequest, "malformed", 0},
		} {
			for how, res := range map[string]reply{
				"header": get(t, r, path(id), "Last-Event-ID", c.id), "query": get(t, r, path(id)+"?after="+c.id),
			} {
				var answer struct {
					Error struct {
						Kind, Message string
						Position      struct{ Fault, Earliest, Latest string }
					}
				}
				if err := json.NewDecoder(res.Body).Decode(&answer); err != nil {
					t.Fatal(err)
				}
				res.close()
				e := answer.Error
				if res.StatusCode != c.status || e.Kind != "invalid" || e.Message == "" || e.Position.Fault != c.name {
					t.Errorf("%s %s: %s %+v", how, c.id, res.Status, e)
				}
				if c.status != http.StatusGone {
					continue
				}
				if e.Position.Latest != fmt.Sprintf("1-%d", latest) {
					t.Errorf("%s: the latest position is %s, want 1-%d", c.id, e.Position.Latest, latest)
				}
				if res := get(t, r, path(id), "Last-Event-ID", e.Position.Earliest); res.StatusCode != http.StatusOK {
					t.Errorf("%s: the earliest position %s is refused: %s", c.id, e.Position.Earliest, res.Status)
				}
			}
			if c.position == nil {
				continue
			}
			for frame, err := range r.Client.Watch(t.Context(), id, client.WatchOptions{From: c.position, Strict: true}) {
				e, ok := err.(*client.Error) //nolint:errorlint // it is the error itself that a watch yields
				if !ok || frame != nil || e.Kind != client.Invalid || e.Position.GetFault() != c.fault {
					t.Errorf("a strict watch from %s: %v, %v", c.id, frame, err)
					break
				}
				if c.status == http.StatusGone && e.Position.Latest.GetSeq() != latest {
					t.Errorf("a strict watch from %s: latest %v", c.id, e.Position.Latest)
				}
			}
		}
	})
}

func TestEventsWithoutAPosition(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := controltest.Start(t, func(o *control.Options) { o.Heartbeat = 4 * time.Second })
		id := r.Create()
		for range 3 {
			r.Prompt(id, "go")
			r.Idle(id)
		}
		res := get(t, r, path(id)+"?transcript=2")
		body := bufio.NewReader(res.Body)
		first := until(t, body, named("reset"))[0]
		var reset roostv1.Reset
		if err := protojson.Unmarshal([]byte(first.data), &reset); err != nil {
			t.Fatal(err)
		}
		if len(reset.Items) != 2 || reset.Reason != roostv1.ResetReason_RESET_REASON_START || first.id != fmt.Sprintf("1-%d", reset.Position.Seq) {
			t.Errorf("id %s, %v", first.id, &reset)
		}
		began := time.Now()
		until(t, body, named("heartbeat"))
		if e := until(t, body, named("heartbeat"))[0]; e.id != first.id || time.Since(began) != 8*time.Second {
			t.Errorf("the second heartbeat has the id %s and comes after %v", e.id, time.Since(began))
		}
		if err := r.Client.Delete(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		events := until(t, body, named("ended"))
		if _, err := readEvent(body); !errors.Is(err, io.EOF) {
			t.Errorf("after %v the stream goes on: %v", events, err)
		}
	})
}

func TestEventsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := controltest.Start(t, nil)
		id := r.Create()
		for _, c := range []struct {
			method, path string
			status       int
		}{
			{http.MethodPost, path(id), http.StatusMethodNotAllowed},
			{http.MethodHead, path(id), http.StatusMethodNotAllowed},
			{http.MethodGet, path("nobody"), http.StatusNotFound},
			{http.MethodGet, path("%2e%2e"), http.StatusNotFound},
			{http.MethodGet, path(id) + "?transcript=1001", http.StatusBadRequest},
			{http.MethodGet, path(id) + "?transcript=-1", http.StatusBadRequest},
			{http.MethodGet, path(id) + "?transcript=99999999999", http.StatusBadRequest},
		} {
			res := request(t, r, c.method, c.path)
			if res.StatusCode != c.status || res.Header.Get("Content-Type") != "application/json" {
				t.Errorf("%s %s: %s %s", c.method, c.path, res.Status, res.Header.Get("Content-Type"))
			}
			res.close()
		}
	})
}

// Events are compressed the way the client likes best, and each can be read as soon as it is there.
func TestEventsCompressed(t *testing.T) {
	unzip := func(r io.Reader) (io.Reader, error) { return gzip.NewReader(r) }
	unzstd := func(r io.Reader) (io.Reader, error) { return zstd.NewReader(r, zstd.WithDecoderConcurrency(1)) }
	plain := func(r io.Reader) (io.Reader, error) { return r, nil }
	for accept, c := range map[string]struct {
		encoding string
		open     func(io.Reader) (io.Reader, error)
	}{
		"":                         {"", plain},
		"gzip":                     {"gzip", unzip},
		"gzip, deflate, br, zstd":  {"zstd", unzstd},
		"zstd;q=0.5, GZIP":         {"gzip", unzip},
		"zstd;q=0, gzip;q=0":       {"", plain},
		"*":                        {"zstd", unzstd},
		"*, zstd; q=0":             {"gzip", unzip},
		"br, identity":             {"", plain},
		"zstd;q=nonsense, gzip;q=": {"", plain},
	} {
		t.Run(accept, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := controltest.Start(t, nil)
				id := r.Create()
				res := get(t, r, path(id), "Accept-Encoding", accept)
				if got := res.Header.Get("Content-Encoding"); got != c.encoding {
					t.Fatalf("encoding %q, want %q", got, c.encoding)
				}
				raw, err := c.open(res.Body)
				if err != nil {
					t.Fatal(err)
				}
				body := bufio.NewReader(raw)
				until(t, body, named("reset"))
				r.Prompt(id, "go") // nothing of what follows is needed to read what came before
				events := until(t, body, func(e serverEvent) bool { return strings.Contains(e.data, "runEnded") })
				if !slices.ContainsFunc(events, func(e serverEvent) bool { return strings.Contains(e.data, "done") }) {
					t.Errorf("the answer is not in %v", events)
				}
			})
		})
	}
}

// A reader that takes nothing does not hold its stream for ever.
func TestStuckEventReaderIsDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stuck := make(chan struct{}, 10)
		r := controltest.Start(t, func(o *control.Options) {
			o.WriteTimeout, o.Stuck = 3*time.Second, func() { stuck <- struct{}{} }
		})
		id := r.Create()
		conn, err := r.Dial(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: localhost\r\n\r\n", path(id))
		time.Sleep(10 * time.Second) // simulated
		if n, err := conn.Read(make([]byte, 1)); err == nil || len(stuck) != 1 {
			t.Errorf("read %d bytes, %v, and Stuck was called %d times", n, err, len(stuck))
		}
	})
}

// A slow reader gets the state instead of the events that it has not read.
func TestSlowEventReaderIsReset(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		big := strings.Repeat("x", 60<<10)
		r := controltest.Start(t, nil, controltest.Says(strings.Split(strings.Repeat(big+" ", 20), " ")...))
		id := r.Create()
		res := get(t, r, path(id))
		defer res.close()
		r.Prompt(id, "go")
		last := r.Idle(id).Position.Seq // nothing has been read yet
		events := until(t, bufio.NewReader(res.Body), func(e serverEvent) bool { return strings.Contains(e.data, "RESET_REASON_SLOW") })
		if e := events[len(events)-1]; e.id != fmt.Sprintf("1-%d", last) || e.name != "reset" {
			t.Errorf("the state has the id %s, want 1-%d", e.id, last)
		}
	})
}
