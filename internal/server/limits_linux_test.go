package server

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/roost-dev/roost/client"
	"github.com/roost-dev/roost/client/pi"
	"github.com/roost-dev/roost/internal/eventlog"
	"github.com/roost-dev/roost/internal/eventlog/sqlitelog"
	"github.com/roost-dev/roost/internal/piwire"
	"github.com/roost-dev/roost/internal/session"
	roostv1 "github.com/roost-dev/roost/proto/roost/v1"
)

// limitFiles makes the server's writes fail beyond a size of a file, as on a full disk.
func (h *home) limitFiles(size uint64) {
	h.t.Helper()
	const fileSize = 1 // RLIMIT_FSIZE
	limit := syscall.Rlimit{Cur: size, Max: ^uint64(0)}
	_, _, errno := syscall.RawSyscall6(syscall.SYS_PRLIMIT64, uintptr(h.cmd.Process.Pid), fileSize, uintptr(unsafe.Pointer(&limit)), 0, 0, 0)
	if errno != 0 {
		h.t.Fatal(errno)
	}
}

// On a full disk a prompt is refused with an error that says so. What was refused has left
// nothing, what was acknowledged before is there, and once there is room all goes on.
func TestFullDisk(t *testing.T) {
	h := newHome(t, "rules: [{default: true, passes: [[{text: hello}]]}]")
	h.start()
	c := h.api()
	id := h.newSession(c)
	h.promptAs(c, id, "first", "go")
	before := h.follow(c, id, over)
	info, err := os.Stat(filepath.Join(h.dir, "data", sqlitelog.FileName+"-wal"))
	if err != nil {
		t.Fatal(err)
	}
	h.limitFiles(uint64(info.Size()))
	for range 3 {
		err = refusal(t, h, id)
		if kind := client.KindOf(err); kind != client.Unavailable || !strings.Contains(err.Error(), "disk is full") {
			t.Errorf("on a full disk the prompt got %s: %v", kind, err)
		}
	}
	now, err := c.Session(h.context(), id, 0, 0)
	if err != nil || now.Session.ItemCount != before.Session.ItemCount || now.Session.Run != nil {
		t.Errorf("after the refusals: %v, %v", now, err)
	}
	h.limitFiles(1 << 40)
	again := h.promptAs(c, id, "refused", "go on")
	v := h.follow(c, id, func(v *client.View) bool { return over(v) && v.Session.LastRun.Id == again.Run })
	if again.Run != 2 || answerOf(v) != "hello" {
		t.Errorf("with room again: run %d, %v", again.Run, v.Items)
	}
	h.restart()
	if v := h.follow(h.api(), id, over); v.Session.LastRun.Id != 2 {
		t.Errorf("after a kill: %v", v.Session)
	}
}

// refusal prompts without trying again.
func refusal(t *testing.T, h *home, id string) error {
	t.Helper()
	c, err := client.New(client.Options{Address: "unix:" + filepath.Join(h.dir, "s.http"), RetryFor: time.Nanosecond})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_, err = c.Prompt(h.context(), id, "refused", strings.Repeat("x", 100<<10))
	return err
}

// An abort gets through while a command floods, the process ends, and what is kept is small.
func TestAbortDuringHugeOutput(t *testing.T) {
	h := newHome(t, "rules: [{default: true, passes: [[{tool: {name: bash, input: {command: 'echo $$ > pid; yes 0123456789 | head -c 40000000; sleep 100'}}}]]}]")
	h.start()
	c := h.api()
	id := h.newSession(c)
	h.promptAs(c, id, "", "go")
	h.follow(c, id, func(v *client.View) bool { return len(toolOf(v).GetOutput()) > 10_000 })
	began := time.Now()
	if _, err := c.Abort(h.context(), id); err != nil {
		t.Fatal(err)
	}
	v := h.follow(c, id, over)
	if took := time.Since(began); took > 2*time.Second {
		t.Errorf("the abort took %v", took)
	}
	if n := len(toolOf(v).GetOutput()); n > 100<<10 || v.Session.LastRun.Outcome != roostv1.Outcome_OUTCOME_ABORTED {
		t.Errorf("%d bytes are kept, the run ended %v", n, v.Session.LastRun)
	}
	pid := strings.TrimSpace(h.read("pid"))
	if stat, err := os.ReadFile("/proc/" + pid + "/stat"); err == nil && !strings.Contains(string(stat), ") Z") {
		t.Errorf("the command still runs: %s", stat)
	}
	info, err := os.Stat(filepath.Join(h.dir, "data", sqlitelog.FileName+"-wal"))
	if err != nil || info.Size() > 24<<20 {
		t.Errorf("the write-ahead log: %v, %v", info.Size(), err)
	}
}

// memory returns what the server has in memory, in bytes.
func (h *home) memory() int64 {
	h.t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", h.cmd.Process.Pid))
	if err != nil {
		h.t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(status), "VmRSS:")
	var kb int64
	if _, err := fmt.Sscan(rest, &kb); err != nil {
		h.t.Fatal(err)
	}
	return kb << 10
}

// longSession writes a session of many items, each with a kilobyte of text.
func longSession(t *testing.T, h *home, id session.ID, items int) {
	t.Helper()
	dir := filepath.Join(h.dir, "data")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	log, err := sqlitelog.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	model := session.ModelRef{Provider: "test", ID: "m"}
	created := session.Created{ID: id, Cwd: h.dir, Model: model, Thinking: session.ThinkingOff}
	if err := log.Append(t.Context(), id, 0, []session.Record{{Seq: 1, At: 1, Event: created}}); err != nil {
		t.Fatal(err)
	}
	s := eventlog.Snapshot{Head: session.Head{ID: id, Seq: 1, Cwd: h.dir, Model: model, Thinking: session.ThinkingOff, CreatedAt: 1, UpdatedAt: 1}}
	body := strings.Repeat("x", 1000)
	for n := range items / 2 {
		text := session.Text{Text: fmt.Sprintf("item %d %s", n, body)}
		s.Items = append(s.Items,
			&session.User{ID: session.ItemID(fmt.Sprintf("u%d", n+1)), Run: session.RunID(n + 1), At: 1, Blocks: []session.Block{text}},
			&session.Assistant{ID: session.ItemID(fmt.Sprintf("a%d", n+1)), Run: session.RunID(n + 1), At: 1, Model: model, Status: session.Complete, Stop: session.StopEnd, Blocks: []session.Block{text}})
	}
	if err := log.Compact(t.Context(), id, s); err != nil {
		t.Fatal(err)
	}
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
}

// A session of 10,000 items, 10 MB of text, is shown within a second, the newest items first
// and the others by pages, and costs the server little more memory than the items.
func TestTenThousandItems(t *testing.T) {
	const items = 10_000
	h := newHome(t, "rules: [{default: true, passes: [[{text: hello}]]}]")
	longSession(t, h, "long", items)
	h.start()
	c := h.api()
	if _, err := c.Server(h.context()); err != nil {
		t.Fatal(err)
	}
	before := h.memory()
	began := time.Now()
	v := h.follow(c, "long", func(v *client.View) bool { return v.Session != nil })
	took := time.Since(began)
	if len(v.Items) != 100 || v.First != items-100 || !strings.HasPrefix(answerOf(v), "item 4999 ") {
		t.Errorf("%d items from %d", len(v.Items), v.First)
	}
	_, all, err := c.Transcript(h.context(), "long")
	if err != nil || len(all) != items || !strings.HasPrefix(client.BlockText(all[0].GetUser().Blocks[0]), "item 0 ") {
		t.Errorf("all pages have %d items, %v", len(all), err)
	}
	p := h.dial()
	again := time.Now()
	h.attach(p, "long")
	whole := time.Since(again)
	p.With("long", func(v *pi.View) {
		if n := len(v.Transcript()); n != items || v.Snapshot.Phase != piwire.PhaseIdle {
			t.Errorf("pi shows %d items", n)
		}
	})
	grown := h.memory() - before
	t.Logf("first page after %v, all by pi's protocol after %v, %d MB more in memory", took, whole, grown>>20)
	if raceDetector {
		return // it takes several times the time and memory
	}
	if took > time.Second || whole > time.Second {
		t.Errorf("attaching took %v, with pi's protocol %v", took, whole)
	}
	if grown > 200<<20 {
		t.Errorf("the server has %d MB more in memory", grown>>20)
	}
}
