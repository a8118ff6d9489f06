package cursortool

import agentv1 "github.com/roost-dev/roost/proto/agent/v1"

// maxShells is how many background shells of a conversation are remembered.
const maxShells = 64

// Shell is a command that goes on in the background of the client.
type Shell struct {
	ID      uint32 // the client's number for it
	Exec    uint32 // the id of the request that started it; set by the driver
	Command string
	Dir     string // where it runs
	PID     uint32 // 0 when unknown
	File    string // of its terminal, in the client's notation; "" when unknown

	seed string // what it had printed when it went to the background
}

// Shells is the background shells of a conversation: what they print and how they end, while the
// client that runs them is connected. It is not safe for concurrent use.
type Shells struct {
	byID   map[uint32]*background
	byExec map[uint32]*background
	order  []*background // oldest first
}

// background is what is known of one shell.
type background struct {
	Shell
	out     tail
	printed uint64 // bytes so far
	live    bool   // its output comes to us
	ended   bool
	code    *int32 // nil when it is not known
}

// NewShells returns an empty set.
func NewShells() *Shells {
	return &Shells{byID: map[uint32]*background{}, byExec: map[uint32]*background{}}
}

// Add begins to follow a shell. One with the same id is forgotten. Of more than 64 the ones that
// ended are forgotten first, then the oldest.
func (s *Shells) Add(sh Shell) {
	if old := s.byID[sh.ID]; old != nil {
		s.remove(old)
	}
	if len(s.order) == maxShells {
		s.remove(s.expendable())
	}
	b := &background{Shell: sh, live: true}
	b.print(sh.seed)
	b.seed = ""
	s.byID[sh.ID] = b
	s.byExec[sh.Exec] = b
	s.order = append(s.order, b)
}

func (s *Shells) expendable() *background {
	for _, b := range s.order {
		if b.ended {
			return b
		}
	}
	return s.order[0]
}

func (s *Shells) remove(b *background) {
	delete(s.byID, b.ID)
	if s.byExec[b.Exec] == b {
		delete(s.byExec, b.Exec)
	}
	for i, o := range s.order {
		if o == b {
			s.order = append(s.order[:i], s.order[i+1:]...)
			return
		}
	}
}

// Result takes a message of an exec whose call has ended. It returns false when the exec belongs
// to no shell that is followed.
func (s *Shells) Result(exec uint32, m *agentv1.ExecClientMessage) bool {
	b := s.byExec[exec]
	if b == nil {
		return false
	}
	if r := m.GetShellResult(); r != nil {
		b.result(r)
		return true
	}
	switch e := m.GetShellStream().GetEvent().(type) {
	case *agentv1.ShellStream_Stdout:
		b.print(e.Stdout.GetData())
	case *agentv1.ShellStream_Stderr:
		b.print(e.Stderr.GetData())
	case *agentv1.ShellStream_Exit:
		b.end(new(int32(e.Exit.GetCode())))
	case *agentv1.ShellStream_Rejected, *agentv1.ShellStream_PermissionDenied, *agentv1.ShellStream_SandboxUnsupported:
		b.end(nil)
	default: // its start, another word of the background, hooks: nothing changes
	}
	return true
}

// Closed says that no more messages come for an exec. A shell that had not ended is looked up in
// its terminal's file from now on. It returns false when the exec belongs to no shell.
func (s *Shells) Closed(exec uint32) bool {
	b := s.byExec[exec]
	if b == nil {
		return false
	}
	b.live = false
	return true
}

// Lost says that the client has gone, and its requests with it. Its shells may be running still.
func (s *Shells) Lost() {
	for _, b := range s.order {
		b.live = false
	}
}

func (b *background) print(text string) {
	b.printed += uint64(len(text))
	b.out.add(text, shellAwait)
}

func (b *background) end(code *int32) {
	if !b.ended {
		b.ended, b.live, b.code = true, false, code
	}
}

func (b *background) result(r *agentv1.ShellResult) {
	switch v := r.GetResult().(type) {
	case *agentv1.ShellResult_Success:
		if !r.GetIsBackground() {
			b.end(new(v.Success.GetExitCode()))
		}
	case *agentv1.ShellResult_Failure:
		b.end(new(v.Failure.GetExitCode()))
	default:
		b.end(nil)
	}
}
