package cursor

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/roost-dev/roost/internal/cursorwire"
	agentv1 "github.com/roost-dev/roost/proto/agent/v1"
	aiserverv1 "github.com/roost-dev/roost/proto/aiserver/v1"
)

// post appends a message as a client does, and returns the status when it is answered.
func post(ctx context.Context, h *hub, id string, seq int64, m *agentv1.AgentClientMessage) int {
	data, err := proto.Marshal(m)
	if err != nil {
		panic(err)
	}
	body, err := proto.Marshal(&aiserverv1.BidiAppendRequest{
		RequestId: &aiserverv1.BidiRequestId{RequestId: id}, AppendSeqno: seq, Data: hex.EncodeToString(data),
	})
	if err != nil {
		panic(err)
	}
	r := httptest.NewRequestWithContext(ctx, http.MethodPost, cursorwire.PathBidiAppend, bytes.NewReader(body))
	r.Header.Set("Content-Type", "application/proto")
	w := httptest.NewRecorder()
	h.append(w, r)
	return w.Code
}

// beat is a message that needs no order.
func beat(id uint32) *agentv1.AgentClientMessage {
	return &agentv1.AgentClientMessage{Message: &agentv1.AgentClientMessage_ExecClientControlMessage{
		ExecClientControlMessage: &agentv1.ExecClientControlMessage{Message: &agentv1.ExecClientControlMessage_Heartbeat{
			Heartbeat: &agentv1.ExecClientHeartbeat{Id: id},
		}},
	}}
}

func cancelAction() *agentv1.AgentClientMessage {
	return &agentv1.AgentClientMessage{Message: &agentv1.AgentClientMessage_ConversationAction{ConversationAction: &agentv1.ConversationAction{
		Action: &agentv1.ConversationAction_CancelAction{CancelAction: &agentv1.CancelAction{}},
	}}}
}

// recorder is a driver that writes down what it gets, and acknowledges it after a while.
type recorder struct {
	delay   func() time.Duration // nil for none
	journal func(seq int64, data []byte) error

	mu   sync.Mutex
	seqs []int64
	free []int64
}

func (d *recorder) drive(_ context.Context, l link) {
	if d.journal != nil {
		l.SetJournal(d.journal)
	}
	for r := range l.Received() {
		d.mu.Lock()
		if r.Message.GetExecClientControlMessage() != nil {
			d.free = append(d.free, r.Seq)
		} else {
			d.seqs = append(d.seqs, r.Seq)
		}
		d.mu.Unlock()
		if d.delay != nil {
			time.Sleep(d.delay()) // of the bubble's clock
		}
		r.Done(nil)
	}
}

func (d *recorder) got() (seqs, free []int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.seqs), slices.Clone(d.free)
}

// chaos sends 40 messages, 16 at a time, delayed at random, some of them twice, some only after they
// got lost once; gone is lost for good, unless it is 0. It returns when all are acknowledged.
func chaos(t *testing.T, h *hub, rnd *rand.Rand, messages []*agentv1.AgentClientMessage, gone int64) {
	t.Helper()
	var flight sync.WaitGroup
	slots := make(chan struct{}, 16)
	for seq, m := range messages {
		if int64(seq) == gone && gone > 0 {
			continue
		}
		delay, twice := time.Duration(rnd.IntN(20))*time.Millisecond, rnd.IntN(3) == 0
		if rnd.IntN(10) == 0 {
			delay += 2 * time.Second // the first one got lost
		}
		again := delay + time.Duration(rnd.IntN(40)-20)*time.Millisecond
		slots <- struct{}{}
		flight.Go(func() {
			defer func() { <-slots }()
			var copies sync.WaitGroup
			send := func(after time.Duration) {
				time.Sleep(after)
				if status := post(t.Context(), h, "id", int64(seq), m); status != http.StatusOK {
					t.Errorf("seq %d: status %d", seq, status)
				}
			}
			if twice {
				copies.Go(func() { send(again) })
			}
			send(delay)
			copies.Wait()
		})
	}
	flight.Wait()
}

// Whatever happens to appends on their way, the driver gets each once, and those that have an order in
// it (section 2.2, R02, W02, W03).
func TestAppendsInAnyOrder(t *testing.T) {
	messages := []*agentv1.AgentClientMessage{runRequest("go")}
	var ordered, free []int64
	for seq := int64(1); seq < 40; seq++ {
		if seq%4 == 0 {
			messages, free = append(messages, beat(uint32(seq))), append(free, seq)
		} else {
			messages, ordered = append(messages, execResult(uint32(seq))), append(ordered, seq)
		}
	}
	ordered = append([]int64{0}, ordered...)
	for seed := range uint64(1000) {
		synctest.Test(t, func(t *testing.T) {
			rnd := rand.New(rand.NewPCG(seed, 0))
			d := &recorder{delay: func() time.Duration { return time.Millisecond }}
			if seed%2 == 0 {
				d.journal = func(seq int64, _ []byte) error {
					time.Sleep(3 * time.Millisecond)
					if seqs, _ := d.got(); slices.Contains(seqs, seq) {
						t.Errorf("the driver had %d before it was in the journal", seq)
					}
					return nil
				}
			}
			h := newHub(hubOptions{Drive: d.drive})
			defer h.Close()
			want := ordered
			var gone int64
			if seed%5 == 0 {
				i := 1 + rnd.IntN(len(ordered)-2)
				gone, want = ordered[i], slices.Concat(ordered[:i], ordered[i+1:])
			}
			chaos(t, h, rnd, messages, gone)
			time.Sleep(11 * time.Second) // a gap is given up
			synctest.Wait()
			seqs, beats := d.got()
			slices.Sort(beats)
			if !slices.Equal(seqs, want) || !slices.Equal(beats, free) {
				t.Errorf("seed %d: the driver got %d and %d", seed, seqs, beats)
			}
		})
		if t.Failed() {
			return
		}
	}
}

// An append that comes when its run is over is acknowledged, and hangs nobody (W09).
func TestAppendAfterTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHub(hubOptions{Drive: echo})
		defer h.Close()
		r := read(h, "id")
		post(t.Context(), h, "id", 0, runRequest("go"))
		post(t.Context(), h, "id", 1, execResult(1))
		<-r.over
		synctest.Wait()
		begun := time.Now()
		for seq, m := range []*agentv1.AgentClientMessage{0: beat(1), 2: execResult(1), 3: beat(1), 4: cancelAction()} {
			if m == nil {
				continue
			}
			if status := post(t.Context(), h, "id", int64(seq), m); status != http.StatusOK {
				t.Errorf("seq %d: status %d", seq, status)
			}
		}
		if waited := time.Since(begun); waited != 0 {
			t.Errorf("waited %v", waited)
		}
	})
}

// An append is acknowledged when the driver has taken it, and so is a copy of it, even one whose
// client gave the first one up (R02).
func TestDuplicateWaitsForTheFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		take := make(chan struct{})
		h := newHub(hubOptions{Drive: func(_ context.Context, l link) {
			for r := range l.Received() {
				<-take
				r.Done(nil)
			}
		}})
		defer h.Close()
		for seq, m := range []*agentv1.AgentClientMessage{runRequest("go"), execResult(1), beat(1)} {
			ctx, cancel := context.WithCancel(t.Context())
			left := make(chan struct{})
			go func() {
				defer close(left)
				post(ctx, h, "id", int64(seq), m)
			}()
			synctest.Wait()
			again := send(h, "id", int64(seq), m)
			cancel()
			<-left
			if again() != 0 {
				t.Errorf("seq %d: the copy was acknowledged before it was taken", seq)
			}
			take <- struct{}{}
			if again() != http.StatusOK {
				t.Errorf("seq %d: status %d", seq, again())
			}
		}
	})
}

// What a driver cannot take ends the client's run; nothing else of an append does (section 1.5).
func TestDriverRefusesAnAppend(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		refusals := []error{errors.New("disk full"), cursorwire.Interrupted("later"), nil}
		h := newHub(hubOptions{Drive: func(_ context.Context, l link) {
			for r := range l.Received() {
				r.Done(refusals[r.Seq])
			}
		}})
		defer h.Close()
		for seq, want := range []int{http.StatusInternalServerError, http.StatusServiceUnavailable, http.StatusOK} {
			m := execResult(1)
			if seq == 0 {
				m = runRequest("go")
			}
			if status := post(t.Context(), h, "id", int64(seq), m); status != want {
				t.Errorf("seq %d: status %d, want %d", seq, status, want)
			}
		}
	})
}

// A cancel goes ahead of what is missing (R02).
func TestCancelWhileOneIsMissing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &recorder{}
		h := newHub(hubOptions{Drive: d.drive})
		defer h.Close()
		post(t.Context(), h, "id", 0, runRequest("go"))
		post(t.Context(), h, "id", 1, execResult(1))
		behind := send(h, "id", 3, execResult(3))
		synctest.Wait()
		if status := post(t.Context(), h, "id", 4, cancelAction()); status != http.StatusOK || behind() != 0 {
			t.Errorf("the cancel: %d; what came before it: %d", status, behind())
		}
		if seqs, _ := d.got(); !slices.Equal(seqs, []int64{0, 1, 4}) {
			t.Errorf("the driver got %d", seqs)
		}
		if status := post(t.Context(), h, "id", 2, execResult(2)); status != http.StatusOK || behind() != http.StatusOK {
			t.Errorf("the missing one: %d; what came before it: %d", status, behind())
		}
		if seqs, _ := d.got(); !slices.Equal(seqs, []int64{0, 1, 4, 2, 3}) {
			t.Errorf("the driver got %d", seqs)
		}
	})
}

// A run_request that takes long to arrive loses nothing that has overtaken it.
func TestSlowStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &recorder{}
		h := newHub(hubOptions{Drive: d.drive})
		defer h.Close()
		early := send(h, "id", 1, execResult(1))
		time.Sleep(25 * time.Second) // of the bubble's clock
		post(t.Context(), h, "id", 0, runRequest("go"))
		synctest.Wait()
		if seqs, _ := d.got(); !slices.Equal(seqs, []int64{0, 1}) || early() != http.StatusOK {
			t.Errorf("the driver got %d, the early one %d", seqs, early())
		}
	})
}

// Once there is a run, what came before it is acknowledged like the rest.
func TestEarlyAppendWaitsForTheDriver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &recorder{delay: func() time.Duration { return 20 * time.Second }}
		h := newHub(hubOptions{Drive: d.drive})
		early := send(h, "id", 1, execResult(1))
		time.Sleep(5 * time.Second)
		send(h, "id", 0, runRequest("go"))
		time.Sleep(39 * time.Second)
		if early() != 0 {
			t.Error("acknowledged before it was taken")
		}
		time.Sleep(2 * time.Second)
		if early() != http.StatusOK {
			t.Errorf("status %d", early())
		}
		h.Close()
	})
}

// An id that begins anew while its run still lives leaves nothing of the old one waiting.
func TestNewEpochOverALiveRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var got []string
		h := newHub(hubOptions{Drive: func(_ context.Context, l link) {
			name := ""
			for r := range l.Received() {
				name = max(name, r.Message.GetRunRequest().GetCustomSystemPrompt())
				r.Done(nil)
			}
			mu.Lock()
			defer mu.Unlock()
			got = append(got, name) // it gets no more
		}})
		post(t.Context(), h, "id", 0, runRequest("old"))
		waiting := send(h, "id", 5, execResult(5))
		if waiting() != 0 {
			t.Error("acknowledged before it was applied")
		}
		if status := post(t.Context(), h, "id", 0, runRequest("new")); status != http.StatusOK || waiting() != http.StatusOK {
			t.Errorf("the new one: %d; the old one: %d", status, waiting())
		}
		synctest.Wait()
		mu.Lock()
		if !slices.Equal(got, []string{"old"}) {
			t.Errorf("ended: %q", got)
		}
		mu.Unlock()
		if status := post(t.Context(), h, "id", 1, execResult(1)); status != http.StatusOK {
			t.Errorf("status %d", status)
		}
		h.Close()
	})
}

// What no run comes for is acknowledged all the same, is dropped in the end, and said so in the log.
func TestAppendsWithoutARun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		h := newHub(hubOptions{Drive: echo, Logger: slog.New(slog.NewTextHandler(&log, nil))})
		defer h.Close()
		early := []func() int{send(h, "id", 1, execResult(1)), send(h, "id", 3, beat(3))}
		time.Sleep(9 * time.Second)
		for i, status := range early {
			if status() != 0 {
				t.Errorf("%d: acknowledged before its time", i)
			}
		}
		time.Sleep(2 * time.Second)
		for i, status := range early {
			if status() != http.StatusOK {
				t.Errorf("%d: status %d", i, status())
			}
		}
		time.Sleep(20 * time.Second)
		synctest.Wait()
		if !strings.Contains(log.String(), "dropped=2") {
			t.Errorf("the log says %q", log.String())
		}
		if left := holds(h); left != (holding{}) {
			t.Errorf("left: %+v", left)
		}
	})
}

// holding is how much a hub has.
type holding struct{ placeholders, lines, wires int }

func holds(h *hub) holding {
	h.mu.Lock()
	defer h.mu.Unlock()
	return holding{h.placeholders, len(h.lines), len(h.wires)}
}

// A driver that takes nothing stops its clients, and holds no more than the limits.
func TestSlowDriver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		take := make(chan struct{})
		d := &recorder{}
		h := newHub(hubOptions{Drive: func(ctx context.Context, l link) {
			<-take
			d.drive(ctx, l)
		}})
		defer h.Close()
		const sent = maxInbox + 500
		send(h, "id", 0, runRequest("go"))
		for seq := range int64(sent) {
			ctx, cancel := context.WithCancel(t.Context())
			go post(ctx, h, "id", seq+1, execResult(1))
			synctest.Wait()
			cancel() // the client does not wait, and has not been told that it was taken
		}
		l, err := h.line("id")
		if err != nil {
			t.Fatal(err)
		}
		if n := len(l.wire.in.queue); n != maxInbox { // nobody takes any
			t.Errorf("%d messages wait", n)
		}
		l.mu.Unlock()
		late := send(h, "id", sent, execResult(1))
		if late() != 0 {
			t.Error("acknowledged")
		}
		close(take)
		time.Sleep(11 * time.Second)
		seqs, _ := d.got()
		if late() != http.StatusOK || !slices.IsSorted(seqs) || len(seqs) != maxInbox+1 {
			t.Errorf("%d; the driver got %d, the last ones %d", late(), len(seqs), seqs[len(seqs)-2:])
		}
	})
}
