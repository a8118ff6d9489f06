package cursor

import (
	"context"
	"fmt"
	"net/http"
	"path"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/roost-dev/roost/internal/cursorwire"
	"github.com/roost-dev/roost/internal/session"
	agentv1 "github.com/roost-dev/roost/proto/agent/v1"
)

// haveBlob finds a blob; nil and true is one that is missing for good.
type haveBlob func(cursorwire.BlobID) ([]byte, bool)

// maxImage is the size in bytes of the largest picture that models take.
const maxImage = 5 << 20

// message is what the action has to say to the model: text, and pictures in the blob store. Actions
// that only take something up say nothing.
func (d *driver) message(ctx context.Context) (string, []session.Block, error) {
	switch a := d.attempt.action.GetAction().(type) {
	case *agentv1.ConversationAction_UserMessageAction:
		var texts []string
		var images []session.Block
		for _, m := range append(a.UserMessageAction.GetPrependUserMessages(), a.UserMessageAction.GetUserMessage()) {
			text, notes := renderMessage(m, d.kv.have)
			texts = append(texts, text)
			d.notice(notes)
			more, err := d.pictures(ctx, m)
			if err != nil {
				return "", nil, err
			}
			images = append(images, more...)
		}
		return joinTexts(texts), images, nil
	case *agentv1.ConversationAction_StartPlanAction:
		text, notes := renderMessage(a.StartPlanAction.GetUserMessage(), d.kv.have)
		d.notice(notes)
		images, err := d.pictures(ctx, a.StartPlanAction.GetUserMessage())
		return text, images, err
	case *agentv1.ConversationAction_ExecutePlanAction:
		return planText(a.ExecutePlanAction, d.attempt.state), nil, nil
	case *agentv1.ConversationAction_AsyncAskQuestionCompletionAction:
		return answerText(a.AsyncAskQuestionCompletionAction), nil, nil
	case *agentv1.ConversationAction_BackgroundTaskCompletionAction:
		return completionText(a.BackgroundTaskCompletionAction), nil, nil
	case *agentv1.ConversationAction_SubscriptionNotificationAction:
		texts := []string{"[A notification that the user has subscribed to]"}
		for _, m := range a.SubscriptionNotificationAction.GetNotifications() {
			text, _ := renderMessage(m, d.kv.have)
			texts = append(texts, text)
		}
		return joinTexts(texts), nil, nil
	case *agentv1.ConversationAction_GoalContinuationAction:
		return "[From the client, not from the user] Go on towards the goal of this conversation. If it is reached, say so.", nil, nil
	case *agentv1.ConversationAction_InjectContextAction:
		text, _ := renderMessage(a.InjectContextAction.GetUserContext().GetUserMessage(), d.kv.have)
		if c := a.InjectContextAction.GetSystemContext(); c != nil {
			text = fmt.Sprintf("[From %s, not from the user]\n%s", c.GetProducer(), c.GetContent())
		}
		return text, nil, nil
	}
	return "", nil, nil
}

func joinTexts(texts []string) string {
	var b strings.Builder
	for _, t := range texts {
		if t == "" {
			continue
		}
		if b.Len() > 0 {
			b.WriteString("\n\n")
		}
		b.WriteString(t)
	}
	return b.String()
}

// messageBlobs are the blobs that a message refers to.
func messageBlobs(m *agentv1.UserMessage) []cursorwire.BlobID {
	entries := [][]byte{m.GetTextBlobId()}
	for _, image := range m.GetSelectedContext().GetSelectedImages() {
		entries = append(entries, image.GetBlobId())
	}
	for _, e := range m.GetSelectedContext().GetExtraContextEntries() {
		entries = append(entries, e.GetBlobId())
	}
	var ids []cursorwire.BlobID
	for _, entry := range entries {
		if id, ok := cursorwire.ParseBlobID(entry); ok {
			ids = append(ids, id)
		}
	}
	return ids
}

// The parts of what a user has selected, and how much of each the model is told; what is cut is told
// to the user.
const (
	maxFile      = 64 << 10 // bytes
	maxSelection = 160 << 10
)

// renderer writes a message with what its user has selected.
type renderer struct {
	b    strings.Builder
	left int
	cut  []string // names of what was left out in part
}

func (r *renderer) part(kind, name, text string) {
	text = strings.ToValidUTF8(text, "\uFFFD")
	if limit := min(maxFile, r.left); len(text) > limit {
		text = strings.ToValidUTF8(text[:limit], "") + "\n[cut]"
		r.cut = append(r.cut, kind+" "+name)
	}
	r.left = max(0, r.left-len(text))
	fmt.Fprintf(&r.b, "\n\n<%s", kind)
	if name != "" {
		fmt.Fprintf(&r.b, " name=%q", name)
	}
	fmt.Fprintf(&r.b, ">\n%s\n</%s>", strings.TrimRight(text, "\n"), kind)
}

// renderMessage is what a model is told of a message: its text as it is, then what the user has
// selected. The second result names what had to be cut.
func renderMessage(m *agentv1.UserMessage, have haveBlob) (string, []string) {
	text := m.GetText()
	if id, ok := cursorwire.ParseBlobID(m.GetTextBlobId()); ok && text == "" {
		data, _ := have(id)
		text = string(data)
	}
	r := renderer{left: maxSelection}
	r.b.WriteString(strings.ToValidUTF8(text, "\uFFFD"))
	c := m.GetSelectedContext()
	for _, x := range c.GetCursorCommands() {
		r.part("command", x.GetName(), x.GetContent())
	}
	for _, x := range c.GetCursorRules() {
		r.part("rule", x.GetRule().GetFullPath(), x.GetRule().GetContent())
	}
	for _, x := range c.GetSelectedSkills() {
		r.part("skill", x.GetFullPath(), x.GetContent())
	}
	for _, x := range c.GetFiles() {
		r.part("file", x.GetPath(), x.GetContent())
	}
	for _, x := range c.GetCodeSelections() {
		name := x.GetPath()
		if x.GetRange() != nil {
			name += fmt.Sprintf(":%d-%d", x.GetRange().GetStart().GetLine(), x.GetRange().GetEnd().GetLine())
		}
		r.part("selection", name, x.GetContent())
	}
	for _, x := range c.GetTerminals() {
		r.part("terminal", x.GetTitle(), x.GetContent())
	}
	for _, x := range c.GetTerminalSelections() {
		r.part("terminal", x.GetTitle(), x.GetContent())
	}
	for _, x := range c.GetFolders() {
		r.part("folder", x.GetPath(), "")
	}
	for _, x := range c.GetExternalLinks() {
		r.part("link", x.GetUrl(), x.GetPdfContent())
	}
	for _, x := range c.GetPastChats() {
		r.part("past_chat", x.GetName(), x.GetAgentId())
	}
	if diff := c.GetGitDiff(); diff != nil {
		r.part("git_diff", "", diff.GetContent())
	}
	for _, x := range c.GetGitCommits() {
		r.part("git_commit", x.GetSha(), x.GetMessage()+"\n"+x.GetDiff())
	}
	for _, x := range c.GetExtraContext() {
		r.part("context", "", x)
	}
	for _, x := range c.GetExtraContextEntries() {
		text := x.GetData()
		if id, ok := cursorwire.ParseBlobID(x.GetBlobId()); ok {
			data, _ := have(id)
			text = string(data)
		}
		r.part("context", "", text)
	}
	for _, x := range m.GetHookAdditionalContexts() {
		r.part("hook", x.GetHookEventName(), x.GetContent())
	}
	if m.GetSubagentSystemReminder() != "" {
		r.part("reminder", "", m.GetSubagentSystemReminder())
	}
	return r.b.String(), r.cut
}

// notice tells the user what the model is not told.
func (d *driver) notice(cut []string) {
	if len(cut) > 0 {
		d.say("The model sees only the beginning of: " + strings.Join(cut, ", "))
	}
}

// say tells the user something that no model has said.
func (d *driver) say(text string) {
	d.sendUpdate(&agentv1.InteractionUpdate{Message: &agentv1.InteractionUpdate_TextDelta{
		TextDelta: &agentv1.TextDeltaUpdate{Text: "[" + text + "]\n\n", IsServerNotice: true},
	}})
}

// pictures puts the pictures of a message into the blob store. One that cannot be used is told to
// the user, never silently dropped.
func (d *driver) pictures(ctx context.Context, m *agentv1.UserMessage) ([]session.Block, error) {
	var blocks []session.Block
	for _, image := range m.GetSelectedContext().GetSelectedImages() {
		data := imageBytes(image, d.kv.have)
		name := path.Base(image.GetPath())
		mime := http.DetectContentType(data)
		switch {
		case len(data) == 0:
			d.say("The picture " + name + " could not be had, so the model does not see it.")
			continue
		case len(data) > maxImage:
			d.say(fmt.Sprintf("The picture %s is larger than %d MiB, so the model does not see it.", name, maxImage>>20))
			continue
		case !strings.HasPrefix(mime, "image/"):
			d.say("The picture " + name + " is of no known kind, so the model does not see it.")
			continue
		}
		hash, err := d.server.opt.Blobs.Put(ctx, data)
		if err != nil {
			return nil, session.Errorf(session.Unavailable, "a picture cannot be kept; is the disk full?")
		}
		blocks = append(blocks, session.Image{MIME: mime, Blob: hash, Size: int64(len(data))})
	}
	if len(blocks) > 0 && !d.images {
		d.say("The model takes no pictures, so it does not see those of this message.")
	}
	return blocks, nil
}

func imageBytes(i *agentv1.SelectedImage, have haveBlob) []byte {
	if data := i.GetData(); len(data) > 0 {
		return data
	}
	if data := i.GetBlobIdWithData().GetData(); len(data) > 0 {
		return data
	}
	for _, entry := range [][]byte{i.GetBlobId(), i.GetBlobIdWithData().GetBlobId()} {
		if id, ok := cursorwire.ParseBlobID(entry); ok {
			data, _ := have(id)
			return data
		}
	}
	return nil
}

// planText is the message that has a plan carried out (section 8.6).
func planText(a *agentv1.ExecutePlanAction, state *agentv1.ConversationStateStructure) string {
	plan := a.GetPlan().GetPlan()
	if plan == "" {
		plan = a.GetPlanFileContent()
	}
	file := a.GetPlanFilePath()
	if file == "" {
		file = a.GetPlanFileUri()
	}
	if plan == "" && file == "" {
		plan = statePlan(state)
	}
	var b strings.Builder
	b.WriteString("Carry out the plan.")
	if file != "" {
		fmt.Fprintf(&b, " It is in the file %s.", file)
	}
	if plan != "" {
		fmt.Fprintf(&b, "\n\n%s", plan)
	}
	return b.String()
}

// statePlan is the plan that a conversation has.
func statePlan(s *agentv1.ConversationStateStructure) string {
	var plan agentv1.ConversationPlan
	if proto.Unmarshal(s.GetPlan(), &plan) != nil {
		return ""
	}
	return plan.GetPlan()
}

// answerText is the message that an answer to an earlier question is.
func answerText(a *agentv1.AsyncAskQuestionCompletionAction) string {
	var b strings.Builder
	b.WriteString("[The user's answer to the question that was asked earlier]")
	answers := a.GetResult().GetSuccess().GetAnswers()
	if a.GetResult().GetSuccess() == nil {
		b.WriteString("\nThe user has not answered: " + a.GetResult().GetRejected().GetReason() + a.GetResult().GetError().GetErrorMessage())
	}
	for _, answer := range answers {
		question, labels := answer.GetQuestionId(), answer.GetSelectedOptionIds()
		for _, q := range a.GetOriginalArgs().GetQuestions() {
			if q.GetId() == answer.GetQuestionId() {
				question, labels = q.GetPrompt(), optionLabels(q, labels)
			}
		}
		fmt.Fprintf(&b, "\n%s: %s", question, strings.Join(labels, ", "))
		if answer.GetFreeformText() != "" {
			fmt.Fprintf(&b, " %s", answer.GetFreeformText())
		}
	}
	return b.String()
}

func optionLabels(q *agentv1.AskQuestionArgs_Question, ids []string) []string {
	var labels []string
	for _, id := range ids {
		label := id
		for _, o := range q.GetOptions() {
			if o.GetId() == id {
				label = o.GetLabel()
			}
		}
		labels = append(labels, label)
	}
	return labels
}

// completionText is the message that the end of background work is.
func completionText(a *agentv1.BackgroundTaskCompletionAction) string {
	var b strings.Builder
	b.WriteString("[From the client, not from the user] Work in the background has ended.")
	for _, c := range a.GetCompletions() {
		kind := "shell command"
		if c.GetKind() == agentv1.BackgroundTaskKind_BACKGROUND_TASK_KIND_SUBAGENT {
			kind = "subagent"
		}
		status := map[agentv1.BackgroundTaskStatus]string{
			agentv1.BackgroundTaskStatus_BACKGROUND_TASK_STATUS_ERROR:   "failed",
			agentv1.BackgroundTaskStatus_BACKGROUND_TASK_STATUS_ABORTED: "was aborted",
		}[c.GetStatus()]
		if status == "" {
			status = "succeeded"
		}
		fmt.Fprintf(&b, "\n\nThe %s %q (id %s) %s.", kind, c.GetTitle(), c.GetTaskId(), status)
		if c.GetDetail() != "" {
			fmt.Fprintf(&b, "\n%s", c.GetDetail())
		}
		if c.GetOutputPath() != "" {
			fmt.Fprintf(&b, "\nIts output is in %s.", c.GetOutputPath())
		}
	}
	return b.String()
}

// baseName is the name of a skill: that of its folder, in either notation.
func baseName(file string) string {
	file = strings.ReplaceAll(file, `\`, "/")
	return path.Base(path.Dir(file))
}
