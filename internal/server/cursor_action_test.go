package server

import (
	"bytes"
	"context"
	"image"
	"image/png"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/roost-dev/roost/internal/cursor/cursortest"
	"github.com/roost-dev/roost/internal/cursorwire"
	agentv1 "github.com/roost-dev/roost/proto/agent/v1"
)

// The client asks for a compaction, which ends its stream like a turn (8.5, R28).
func TestCursorSummarize(t *testing.T) {
	h := newHome(t, "rules: [{default: true, passes: [[{text: 'an answer that is long enough to be summarised, word after word', repeat: 20}]]}]")
	h.start()
	c := h.editor(cursortest.Options{})
	summarize := cursortest.Prompt{Action: &agentv1.ConversationAction{
		Action: &agentv1.ConversationAction_SummarizeAction{SummarizeAction: &agentv1.SummarizeAction{}},
	}}
	if r := h.turn(c, summarize); r.Text != "" { // there is nothing yet
		t.Error(explain(r))
	}
	for range 3 {
		h.turn(c, cursortest.Prompt{Text: "go"})
	}
	r := h.turn(c, summarize)
	var told []string
	for _, u := range r.Updates {
		switch {
		case u.GetSummaryStarted() != nil:
			told = append(told, "started")
		case u.GetSummary() != nil:
			told = append(told, "summary")
		case u.GetSummaryCompleted() != nil:
			told = append(told, "completed")
		}
	}
	if got := strings.Join(told, " "); got != "started summary completed" {
		t.Errorf("the client is told %q; %s", got, explain(r))
	}
	if s := r.Checkpoint; len(s.GetTurns()) != 3 || len(s.GetSummaryArchives()) != 1 || s.GetSelfSummaryCount() != 1 {
		t.Errorf("%d turns, %d archives, %d summaries", len(s.GetTurns()), len(s.GetSummaryArchives()), s.GetSelfSummaryCount())
	}
	h.turn(c, cursortest.Prompt{Text: "go on"})
}

// Actions that are no message of the user start a turn of the model all the same (R14).
func TestCursorActions(t *testing.T) {
	h := newHome(t, `
rules:
  - {contains: 'subagent "look"', passes: [[{text: seen}]]}
  - {contains: towards the goal, passes: [[{text: going}]]}
  - {contains: 'which: A', passes: [[{text: chosen}]]}
  - {default: true, passes: [[{text: fine}]]}
`)
	h.start()
	c := h.editor(cursortest.Options{})
	h.turn(c, cursortest.Prompt{Text: "go"})
	question := &agentv1.AskQuestionArgs{Questions: []*agentv1.AskQuestionArgs_Question{{
		Id: "q", Prompt: "which", Options: []*agentv1.AskQuestionArgs_Option{{Id: "a", Label: "A"}},
	}}}
	answer := &agentv1.AskQuestionResult{Result: &agentv1.AskQuestionResult_Success{Success: &agentv1.AskQuestionSuccess{
		Answers: []*agentv1.AskQuestionSuccess_Answer{{QuestionId: "q", SelectedOptionIds: []string{"a"}}},
	}}}
	for want, action := range map[string]*agentv1.ConversationAction{
		"seen": {Action: &agentv1.ConversationAction_BackgroundTaskCompletionAction{BackgroundTaskCompletionAction: &agentv1.BackgroundTaskCompletionAction{
			Completions: []*agentv1.BackgroundTaskCompletion{{TaskId: "1", Kind: agentv1.BackgroundTaskKind_BACKGROUND_TASK_KIND_SUBAGENT, Title: "look"}},
		}}},
		"going": {Action: &agentv1.ConversationAction_GoalContinuationAction{GoalContinuationAction: &agentv1.GoalContinuationAction{}}},
		"chosen": {Action: &agentv1.ConversationAction_AsyncAskQuestionCompletionAction{AsyncAskQuestionCompletionAction: &agentv1.AsyncAskQuestionCompletionAction{
			OriginalToolCallId: "t", OriginalArgs: question, Result: answer,
		}}},
		"": {Action: &agentv1.ConversationAction_ShellCommandAction{ShellCommandAction: &agentv1.ShellCommandAction{
			ShellCommand: &agentv1.ShellCommand{Command: "ls"},
		}}},
	} {
		if r := h.turn(c, cursortest.Prompt{Action: action}); r.Text != want {
			t.Errorf("%q: %s", want, explain(r))
		}
	}
}

// A question is answered by the user, in the client.
func TestCursorQuestion(t *testing.T) {
	h := newHome(t, `
rules: [{default: true, passes: [[{tool: {name: AskQuestion, input: {questions: [{id: q, prompt: which, options: [{id: a, label: Apple}, {id: b, label: Pear}]}]}}}], [{text: "${tool1}"}]]}]
`)
	h.start()
	c := h.editor(cursortest.Options{Answer: func(_ context.Context, q *agentv1.InteractionQuery) *agentv1.InteractionResponse {
		return &agentv1.InteractionResponse{Id: q.Id, Result: &agentv1.InteractionResponse_AskQuestionInteractionResponse{
			AskQuestionInteractionResponse: &agentv1.AskQuestionInteractionResponse{Result: &agentv1.AskQuestionResult{
				Result: &agentv1.AskQuestionResult_Success{Success: &agentv1.AskQuestionSuccess{
					Answers: []*agentv1.AskQuestionSuccess_Answer{{QuestionId: "q", SelectedOptionIds: []string{"b"}}},
				}},
			}},
		}}
	}})
	if r := h.turn(c, cursortest.Prompt{Text: "go"}); !strings.Contains(r.Text, "Pear") {
		t.Error(explain(r))
	}
}

// A pasted picture comes as the id of a blob, which the client has sent along or is asked for; one
// that cannot be had, or that the model cannot see, is told to the user (R23, R24).
func TestCursorPictures(t *testing.T) {
	h := newHome(t, "rules: [{default: true, passes: [[{text: fine}]]}]")
	h.start()
	var picture bytes.Buffer
	if err := png.Encode(&picture, image.NewRGBA(image.Rect(0, 0, 2, 2))); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		sent, has bool
		notice    string
	}{
		"sent along": {sent: true},
		"asked for":  {has: true},
		"missing":    {notice: "could not be had"},
	} {
		t.Run(name, func(t *testing.T) {
			client := h.editor(cursortest.Options{})
			id := cursorwire.BlobIDOf(picture.Bytes())
			if c.has {
				client.Blobs().Put(picture.Bytes())
			}
			m := &agentv1.UserMessage{Text: "look", SelectedContext: &agentv1.SelectedContext{SelectedImages: []*agentv1.SelectedImage{{
				DataOrBlobId: &agentv1.SelectedImage_BlobId{BlobId: id.Bytes()}, Path: "a.png",
			}}}}
			r := h.turn(client, cursortest.Prompt{
				Action: &agentv1.ConversationAction{Action: &agentv1.ConversationAction_UserMessageAction{
					UserMessageAction: &agentv1.UserMessageAction{UserMessage: m},
				}},
				Edit: func(run *agentv1.AgentRunRequest) {
					if c.sent {
						run.PreFetchedBlobs = []*agentv1.PreFetchedBlob{{Id: id.Bytes(), Value: picture.Bytes()}}
					}
				},
			})
			told := ""
			for _, u := range r.Updates {
				if d := u.GetTextDelta(); d.GetIsServerNotice() {
					told += d.GetText()
				}
			}
			if !strings.Contains(told, c.notice) {
				t.Errorf("the user is told %q", told)
			}
			_, items, err := h.dialAPI().Transcript(h.context(), client.ConversationID())
			if err != nil {
				t.Fatal(err)
			}
			images := 0
			for _, i := range items {
				for _, b := range i.GetUser().GetBlocks() {
					if b.GetImage() != nil {
						images++
					}
				}
			}
			if want := map[bool]int{true: 1}[c.sent || c.has]; images != want {
				t.Errorf("the message has %d pictures, want %d", images, want)
			}
		})
	}
}

// What the user has selected is part of the stored message, commands included (R41); what is too much
// of it is cut, and the user is told (W51).
func TestCursorSelections(t *testing.T) {
	h := newHome(t, "rules: [{default: true, passes: [[{text: fine}]]}]")
	h.start()
	c := h.editor(cursortest.Options{})
	m := &agentv1.UserMessage{Text: "  go\n", SelectedContext: &agentv1.SelectedContext{
		CursorCommands: []*agentv1.SelectedCursorCommand{{Name: "review", Content: "Look twice."}},
		Files:          []*agentv1.SelectedFile{{Path: "big.txt", Content: strings.Repeat("x", 100<<10)}},
	}}
	r := h.turn(c, cursortest.Prompt{Action: &agentv1.ConversationAction{Action: &agentv1.ConversationAction_UserMessageAction{
		UserMessageAction: &agentv1.UserMessageAction{UserMessage: m},
	}}})
	told := ""
	for _, u := range r.Updates {
		if d := u.GetTextDelta(); d.GetIsServerNotice() {
			told += d.GetText()
		}
	}
	if !strings.Contains(told, "big.txt") {
		t.Errorf("the user is told %q", told)
	}
	if said := h.transcript(c.ConversationID()); !strings.Contains(said, "  go\n") || !strings.Contains(said, "Look twice.") {
		t.Errorf("pi sees:\n%.300s", said)
	}
}

// Fifty reads at once are done at once (R16).
func TestCursorManyReads(t *testing.T) {
	h := newHome(t, "rules: [{default: true, passes: [["+strings.Repeat("{tool: {name: Read, input: {path: f}}}, ", 50)+"], [{text: '${tool50}'}]]}]")
	h.start()
	if err := os.WriteFile(filepath.Join(h.workspace(), "f"), []byte("content\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	r := h.turn(h.editor(cursortest.Options{}), cursortest.Prompt{Text: "go"})
	if len(r.Cards) != 50 || !strings.Contains(r.Text, "content") {
		t.Errorf("%d calls, %q", len(r.Cards), r.Text)
	}
}
