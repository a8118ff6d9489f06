package cli

import (
	"fmt"
	"strings"
	"time"

	"github.com/roost-dev/roost/client"
	roostv1 "github.com/roost-dev/roost/proto/roost/v1"
)

// Limits of what is shown of a tool call.
const (
	shownInput = 100 // characters
	shownLines = 5   // of output
	shownWidth = 120 // characters of a line of output
)

// printer shows a view as it grows: what models say goes to the output, everything else
// beside it. It remembers what has been shown, so it does not matter in which steps, or with
// which resets, the view grows.
type printer struct {
	out, aside *terminal
	users      bool // show prompts and notes, too; steers are always shown
	ids        bool // show the ids of prompts and steers
	questions  bool // show what is asked, and how to answer it

	next   int       // index of the first item not shown to its end
	shown  []int     // bytes of each block of that item
	begun  bool      // that tool item's call has been shown
	open   *terminal // where a text has begun that may go on
	kind   string    // of that text
	midway bool      // its line has not ended
	retry  string    // the retry shown last
	failed string    // the error shown last
	ended  uint32    // the newest run whose end has been shown or is of no interest

	asked      map[string]bool // calls whose question has been shown
	compacting bool            // that has been shown
	news       []string        // what frames have brought, to be shown after the items
}

// skip takes what is in the view for known. Before the first update it spares the user the
// end of runs long past.
func (p *printer) skip(v *client.View) {
	p.next, p.ended = v.First+len(v.Items), v.Session.GetLastRun().GetId()
}

// update shows what is new in the view.
func (p *printer) update(v *client.View) {
	if v.Session == nil {
		return
	}
	if v.First > p.next {
		p.say(p.aside.style(dim, fmt.Sprintf("… %d items not shown …", v.First-p.next)))
		p.next, p.shown, p.begun = v.First, nil, false
	}
	p.next = min(p.next, v.First+len(v.Items)) // less than there was: it was rewound during an absence
	for p.next-v.First < len(v.Items) {
		if !p.item(v.Items[p.next-v.First]) {
			break
		}
		p.next, p.shown, p.begun = p.next+1, nil, false
	}
	p.ask(v)
	p.status(v.Session)
}

// ask shows the questions that are open.
func (p *printer) ask(v *client.View) {
	for _, i := range v.Queries() {
		if !p.questions || p.asked[i.Id] {
			continue
		}
		if p.asked == nil {
			p.asked = make(map[string]bool)
		}
		p.asked[i.Id] = true
		for _, l := range append(question(p.aside, i), elsewhere(p.aside, v.Session.Id, i.Id)) {
			p.say(l)
		}
	}
}

// frame takes what a view does not keep from a frame, to show it with the next update.
func (p *printer) frame(frame *roostv1.WatchResponse) {
	for _, e := range frame.GetEvents().GetEvents() {
		switch k := e.Kind.(type) {
		case *roostv1.Event_Rewound:
			p.rewound(int(k.Rewound.ItemCount))
		case *roostv1.Event_CompactionStarted:
			p.compacting = true
			p.news = append(p.news, p.aside.style(dim, compacting))
		case *roostv1.Event_CompactionEnded:
			p.compacted(k.CompactionEnded)
		}
	}
}

// rewound forgets items that have been taken away, so that those that come in their place are
// shown.
func (p *printer) rewound(n int) {
	if p.next > n {
		p.next, p.shown, p.begun = n, nil, false
	}
	p.say(p.aside.style(dim, "rewound: what was said last is taken back"))
}

const compacting = "compacting: old items are being summarised"

func (p *printer) compacted(e *roostv1.CompactionEnded) {
	switch {
	case e.Error != "":
		p.failed = e.Error
		p.news = append(p.news, p.aside.style(yellow, "no summary: "+p.aside.clean(e.Error)))
	case p.compacting:
		p.news = append(p.news, p.aside.style(dim, fmt.Sprintf("compacted: the model is told a summary of %d characters instead", len([]rune(e.Summary)))))
	default:
		p.news = append(p.news, p.aside.style(dim, "compacted: the model is told less of old tool outputs"))
	}
	p.compacting = false
}

// item shows what is new of an item, and reports whether that was all there will be.
func (p *printer) item(i *roostv1.Item) bool {
	switch k := i.Kind.(type) {
	case *roostv1.Item_User:
		if k.User.Note != "" {
			p.note(k.User)
			return true
		}
		if k.User.Steer || p.users {
			id := ""
			if p.ids {
				id = p.aside.style(dim, p.aside.line(i.Id, shownInput)) + " "
			}
			for _, b := range k.User.Blocks {
				p.say(id + p.aside.style(bold, "> "+p.aside.clean(client.BlockText(b))))
			}
		}
		return true
	case *roostv1.Item_Assistant:
		return p.assistant(k.Assistant)
	case *roostv1.Item_Tool:
		return p.tool(k.Tool)
	}
	return true
}

// note shows the beginning of what the model was told by no person.
func (p *printer) note(u *roostv1.User) {
	if !p.users {
		return
	}
	text := make([]string, 0, len(u.Blocks))
	for _, b := range u.Blocks {
		text = append(text, client.BlockText(b))
	}
	p.say(p.aside.style(dim, "note, "+p.aside.line(u.Note, shownInput)+": "+p.aside.line(strings.Join(text, " "), shownWidth)))
}

func (p *printer) assistant(a *roostv1.Assistant) bool {
	for n, b := range a.Blocks {
		if n == len(p.shown) {
			p.shown = append(p.shown, 0)
		}
		text := client.BlockText(b)
		fresh := text[min(p.shown[n], len(text)):]
		p.shown[n] = len(text)
		if fresh == "" {
			continue
		}
		switch b.Kind.(type) {
		case *roostv1.Block_Text:
			p.stream(p.out, fmt.Sprint("text", n), fresh, p.out.text(fresh))
		case *roostv1.Block_Reasoning:
			p.stream(p.aside, fmt.Sprint("reasoning", n), fresh, p.aside.style(dim, p.aside.clean(fresh)))
		}
	}
	if a.Status == roostv1.Status_STATUS_STREAMING {
		return false
	}
	p.close()
	if a.Error != "" {
		p.failed = a.Error
		p.say(p.aside.style(red, "error: "+p.aside.clean(a.Error)))
	}
	if a.Stop == roostv1.StopReason_STOP_REASON_LENGTH {
		p.say(p.aside.style(yellow, "the answer reached the limit of its length"))
	}
	return true
}

// tool shows a call when it begins, and its result when it has ended.
func (p *printer) tool(t *roostv1.Tool) bool {
	if !p.begun {
		p.begun = true
		p.say(p.aside.style(cyan, "● "+p.aside.line(t.Name, shownInput)) + " " + p.aside.line(t.Input, shownInput))
	}
	if t.Status == roostv1.Status_STATUS_STREAMING {
		return false
	}
	lines := strings.Split(strings.TrimRight(t.Output, "\n"), "\n")
	for n, l := range lines {
		if n == shownLines {
			p.say(p.aside.style(dim, fmt.Sprintf("  … %d more lines", len(lines)-n)))
			break
		}
		code := dim
		if t.Status == roostv1.Status_STATUS_FAILED {
			code = red
		}
		p.say(p.aside.style(code, "  "+p.aside.line(l, shownWidth)))
	}
	return true
}

// status shows what the transcript does not say.
func (p *printer) status(s *roostv1.Session) {
	retry := ""
	if r := s.Run.GetRetry(); r != nil {
		retry = r.Reason + r.ResumeAt.AsTime().String()
		if retry != p.retry {
			p.say(p.aside.style(yellow, "retrying at "+r.ResumeAt.AsTime().Local().Format(time.TimeOnly)+": "+p.aside.clean(r.Reason)))
		}
	}
	p.retry = retry
	for _, l := range p.news {
		p.say(l)
	}
	p.news = nil
	if now := s.Run.GetCompacting(); now != p.compacting {
		if p.compacting = now; now {
			p.say(p.aside.style(dim, compacting))
		}
	}
	if r := s.GetLastRun(); r.GetId() > p.ended {
		p.ended = r.Id
		p.close()
		switch r.Outcome {
		case roostv1.Outcome_OUTCOME_FAILED:
			if r.Error != p.failed {
				p.say(p.aside.style(red, "the run failed: "+p.aside.clean(r.Error)))
			}
		case roostv1.Outcome_OUTCOME_ABORTED:
			p.say(p.aside.style(yellow, "the run was aborted"))
		case roostv1.Outcome_OUTCOME_COMPLETED, roostv1.Outcome_OUTCOME_UNSPECIFIED:
		}
	}
}

// stream writes a piece of a text that may go on.
func (p *printer) stream(t *terminal, kind, text, styled string) {
	if p.open != nil && p.kind != kind {
		p.close()
	}
	p.open, p.kind, p.midway = t, kind, !strings.HasSuffix(text, "\n")
	t.printf("%s", styled)
}

// close ends a text.
func (p *printer) close() {
	if p.open != nil && p.midway {
		p.open.printf("\n")
	}
	p.open = nil
}

// say writes a line beside the output. A text that is open goes on behind it, unless that
// would be on the same line: in a file it is never torn apart.
func (p *printer) say(line string) {
	if p.open == p.aside || p.out.tty && p.aside.tty {
		p.close()
	}
	p.aside.printf("%s\n", line)
}
